"""Every form of import and signature."""

from __future__ import annotations

import os
import os.path as path, sys
from typing import (
    Generic,
    TypeVar,
)
from . import sibling
from ..package import *

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

try:
    import fast
except ImportError:
    fast = None

T = TypeVar("T")
LIMIT: int = 10


def plain():
    os.getcwd()  # gone
    return LIMIT  # gone, and more of it


def documented(first: int, second: str = "a", /, third=None, *rest: T, key: bool, **others) -> dict[str, T]:
    """Says what it does."""
    first = path.join(second)  # gone
    return first  # gone, and more of it


async def wrapped(
    first: int,
    *,
    second: list[
        str
    ] = [],
) -> None:
    """
    Says what it does

    # in more than one line """
    # This comment is gone.
    await sibling.run(first)  # gone
    await sibling.run(second)  # gone


def generic[K: str, *V, **P](value: K) -> K:
    value = value.strip()  # gone
    return value  # gone, and more of it


def joined():
    "Documentation " "in two parts"
    value = tomllib.load(fast)  # gone
    return value  # gone, and more of it


@decorated(
    first=1,
)
@other.thing
class Forms(Base, Generic[T], metaclass=Meta):
    """Documentation of a class."""

    field: int = 1
    __slots__ = ("field",)

    def __init__(self, field: int):
        self.field = field  # gone
        self.other = field  # gone, and more of it

    @property
    def value(self) -> int:
        """The value."""
        copy = self.field  # gone
        return copy  # gone, and more of it

    @value.setter
    def value(self, value: int) -> None:
        self.field = value  # gone
        self.other = value  # gone, and more of it

    @staticmethod
    async def later(callback=lambda x: x + 1, *args):
        await callback(args)  # gone
        return callback  # gone, and more of it

    class Inner:
        def nested(self): return self

        def deep(
            self,
        ):
            # This comment is gone.
            value = self.nested()  # gone
            return value  # gone, and more of it


if LIMIT:
    def conditional(value):
        value = value + 1  # gone
        return value  # gone, and more of it
