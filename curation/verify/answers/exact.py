"""placeholder"""
from curation.verify.answers.expr import Expr
def is_zero(left: Expr, right: Expr) -> bool:
    return False
