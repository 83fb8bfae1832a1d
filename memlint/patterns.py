"""Regular expressions that are compiled on first use. Two hundred modules define some, and a run uses few: compiled on
import, they took a third of a short run's time."""

import re
from typing import AnyStr, cast


class _Lazy:
    """A stand-in for the compiled pattern, whose attributes are fetched once and then found without a call."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # copy and pickle look these up before the source is set
            raise AttributeError(name)
        found = getattr(re.compile(self._source, self._flags), name)  # compiled once: `re` keeps it
        self.__dict__[name] = found
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return lazy_pattern, (self._source, self._flags)


def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile(source, flags)`, put off until one of its methods is asked for; functions of `re` do not take it.

    Raises re.error on first use if `source` is no expression (a test compiles all).
    """
    return cast("re.Pattern[AnyStr]", _Lazy(source, flags))


#: Python's line ends; for str.splitlines, a form feed and a few others are line ends too
NEWLINE = lazy_pattern(r"\r\n?|\n")
