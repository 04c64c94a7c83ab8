"""Stand-ins for a bare GPU machine, which has torch and transformers, while the trainer's modules import more.

`install` runs before the project is imported. Settings become classes whose fields have defaults and are not checked;
tables do not exist. If `varlen_attn`, before torch 2.13, knows no grouped heads, keys and values are repeated.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from types import ModuleType
from typing import Any, ClassVar, get_origin
from unittest.mock import MagicMock


def install() -> list[str]:
    """Put stand-ins in the place of what is missing, and return what was."""
    missing = [name for name in ("polars", "pydantic", "pyarrow", "orjson") if importlib.util.find_spec(name) is None]
    for name in missing:
        if name == "pydantic":
            _install_pydantic()
        else:
            sys.modules[name] = MagicMock(name=name)
    if _adapt_varlen():
        missing.append("enable_gqa of varlen_attn")
    return missing


class _Field:
    def __init__(self, default: Any = ..., *, default_factory: Any = None, **_: Any) -> None:
        self.default, self.default_factory = default, default_factory


class _Model:
    """Settings of plain values: what is not given has its default."""

    model_config: ClassVar[Any] = {}
    model_fields: ClassVar[dict[str, _Field]] = {}

    def __init_subclass__(cls, **_: Any) -> None:
        super().__init_subclass__()
        fields = dict(cls.model_fields)
        for name, kind in inspect.get_annotations(cls).items():
            if str(kind).startswith("ClassVar") or get_origin(kind) is ClassVar:
                continue
            given = cls.__dict__.get(name, ...)
            fields[name] = given if isinstance(given, _Field) else _Field(given)
        cls.model_fields = fields

    def __init__(self, **values: Any) -> None:
        for name, field in type(self).model_fields.items():
            if name in values:
                value = values.pop(name)
            elif field.default_factory is not None:
                value = field.default_factory()
            elif field.default is ...:
                raise TypeError(f"{type(self).__name__}: {name} is missing")
            else:
                value = field.default
            object.__setattr__(self, name, value)
        if values:
            raise TypeError(f"{type(self).__name__}: knows no {', '.join(values)}")

    @classmethod
    def model_validate(cls, values: Any) -> Any:
        return cls(**values)

    def model_copy(self, *, update: dict[str, Any] | None = None) -> Any:
        return type(self)(**{**vars(self), **(update or {})})


def _install_pydantic() -> None:
    def decorator(*_: Any, **__: Any) -> Any:
        return lambda function: function

    class Marker:
        def __init__(self, *_: Any, **__: Any) -> None:
            """Nothing is checked."""

    modules = {name: ModuleType(name) for name in ("pydantic", "pydantic.fields", "pydantic.json_schema")}
    modules["pydantic_core"] = MagicMock(name="pydantic_core")
    top: Any = modules["pydantic"]
    top.__path__ = []
    top.BaseModel, top.Field, top.ConfigDict = _Model, _Field, dict
    top.model_validator = top.field_validator = top.field_serializer = decorator
    top.ValidationError = type("ValidationError", (ValueError,), {})
    top.NonNegativeFloat = float

    def other(name: str) -> Any:
        """Return what stands for any further name of pydantic."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Marker

    top.__getattr__ = other
    sys.modules.update(modules)
    fields: Any = modules["pydantic.fields"]
    schema: Any = modules["pydantic.json_schema"]
    fields.FieldInfo, schema.JsonSchemaValue, schema.SkipJsonSchema = _Field, dict, Marker


def _adapt_varlen() -> bool:
    """Teach an older `varlen_attn` grouped heads; return whether that was needed."""
    from torch.nn.attention import varlen

    known = inspect.signature(varlen.varlen_attn).parameters
    if "enable_gqa" in known:
        return False
    own: Any = varlen.varlen_attn

    def varlen_attn(query: Any, key: Any, value: Any, *rest: Any, enable_gqa: bool = False, **more: Any) -> Any:
        if enable_gqa:
            times = query.shape[1] // key.shape[1]
            key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
        if "window_size" not in known:
            more["is_causal"] = more.pop("window_size") == (-1, 0)
        return own(query, key, value, *rest, **more)

    varlen.varlen_attn = varlen_attn
    return True
