"""C text without its comments and strings, so that a check can look for words."""
import re

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def code_of(text):
    """The same text with every comment and literal turned into blanks, line by line."""
    return _TOKEN.sub(_blank, text)
