"""What runs inside the box: started as a bare interpreter that imports only the standard library and its siblings.

Nothing here may import `curation`: the box does not see it.
"""
