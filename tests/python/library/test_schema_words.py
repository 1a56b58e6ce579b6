"""What PyTorch 2.13 says about texts that are no schemas, word for word."""

import pytest

import cresset
from cresset.library import Library

UNKNOWN = (
    "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full list, please see "
    "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func "
)
EXPECTED = {  # text: (what is said, column, marks)
    "bad(Tensr a) -> Tensor": (UNKNOWN, 4, 5),
    "x3(Tensor a) -> Tensr": (UNKNOWN, 16, 5),
    " w7 (Foo a)->Tensor": (UNKNOWN, 5, 3),
    "d4(Tensor x) Tensor": ("expected arrow but found 'ident' here", 13, 6),
    "d5(Tensor x -> Tensor": ("expected ) but found 'arrow' here", 12, 2),
    "x1(Tensor a, Tensor) -> Tensor": ("expected ident but found ')' here", 19, 1),
    "x5(int a=foo) -> Tensor": ("\ninvalid numeric default value", 12, 1),
    "x6(Tensor a=1) -> Tensor": ("expected None but found 'number' here", 12, 1),
    "x7(int[ a) -> Tensor": ("expected number but found 'ident' here", 8, 1),
    "x8(Tensor(a a) -> Tensor": ("expected ) but found 'ident' here", 12, 1),
    "y4(str a='abc) -> Tensor": ("expected a valid token but found ''' here", 9, 1),
    "y5(Tensor a) -> Tensor extra more": ("expected eof but found 'ident' here", 29, 4),
    "5x(Tensor a) -> Tensor": ("expected ident but found 'number' here", 0, 1),
    "z4(Dict(str, Tensor a) -> Tensor": ("expected ) but found 'ident' here", 20, 1),
    "z9(Tensor a, int b=1, ...) -> Tensor": ("\nschemas with vararg (...) can't have default value args", 27, 2),
    "z8(Tensor a) -> (..., Tensor)": ("\n... must be the last element of the return list", 22, 6),
    "z6(..., Tensor a) -> Tensor": ("\n... must be the last element of the argument list", 8, 6),
    "z7(Tensor a b) -> Tensor": ("expected ) but found 'ident' here", 12, 1),
    "d10(__torch__.torch.classes.x.Y x) -> Tensor": ("\nUnknown custom class type x.Y. Please ensure it is registered.", 30, 1),
}
AT_THE_END = {"bad(": "ident", "": "ident", "x2(Tensor a) -> ": "ident", "y1(Tensor a)": "arrow", "y6(Tensor a) -> (Tensor, Tensor": ")"}


@pytest.fixture(scope="module")
def library():
    library = Library("schema_words", "FRAGMENT")
    yield library
    library._destroy()


def said(call, text):
    with pytest.raises(RuntimeError) as caught:
        call(text)
    return str(caught.value)


@pytest.mark.parametrize("text", EXPECTED)
def test_the_place_is_marked(library, text):
    what, column, marks = EXPECTED[text]
    expected = f"{what}:\n{text}\n{' ' * column}{'~' * marks} <--- HERE\n"
    assert said(library.define, text) == expected
    assert said(cresset._C.parse_schema, text) == expected


@pytest.mark.parametrize("text", AT_THE_END)
def test_texts_that_end_too_early(library, text):
    assert said(library.define, text) == f"expected {AT_THE_END[text]} but found 'eof' here:\n{text}"


def test_names_alone_and_names_of_overloads(library):
    assert said(library.define, "x9") == "Tried to parse a function schema but only the operator name was given"
    assert said(library.define, "y7.default(Tensor a) -> Tensor") == "default is not a legal overload name for aten operators"


def test_two_stars_are_one(library):
    assert str(cresset._C.parse_schema("y3(Tensor a, *, *, Tensor b) -> Tensor")) == "y3(Tensor a, *, Tensor b) -> Tensor"


ESCAPED = {
    r'" \n\t\f\v\r\a\b\\\""': " \n\t\f\v\r\a\b\\\"", r"'\''": "'", r'"\101\012"': "A\n", '"tab\tand\nline"': "tab\tand\nline", '"\x01\x7f"': "\x01\x7f", '"ä"': "ä",
}  # fmt: skip


@pytest.mark.parametrize("written", ESCAPED)
def test_defaults_that_are_escaped(written):
    """Scripts' strip() takes its characters from such a default."""
    for text in (f"f(str a={written}) -> str", str(cresset._C.parse_schema(f"f(str a={written}) -> str"))):
        assert cresset._C.parse_schema(text).arguments[0].default_value == ESCAPED[written]


def test_escapes_that_stand_for_nothing():
    for text, words in ((r'"\q"', "ill formed octal specifier"), (r'"\0"', "ill formed octal specifier"), (r'"\x41"', "unsupported hex specifier")):
        with pytest.raises(RuntimeError, match=words):
            cresset._C.parse_schema(f"f(str a={text}) -> str")
