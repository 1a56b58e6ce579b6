"""Tags of forms: those that write self and those that write out say so, and tags come in the order of their numbers."""

from cresset import Tag, ops
from cresset.library import Library, define


def test_tags_of_the_forms_of_an_operator():
    add = ops.aten.add
    assert add.Tensor.tags == [Tag.core, Tag.pointwise, Tag.pt2_compliant_tag]
    assert ops.aten.add_.Tensor.tags == [Tag.inplace, Tag.pointwise, Tag.pt2_compliant_tag]
    assert add.out.tags == [Tag.out, Tag.pointwise, Tag.pt2_compliant_tag]
    assert ops.aten.mm.out.tags == [Tag.out, Tag.pt2_compliant_tag]


def test_a_tag_shows_its_number():
    assert (repr(Tag.core), repr(Tag.pointwise), int(Tag.view_copy)) == ("<Tag.core: 0>", "<Tag.pointwise: 16>", 19)


def test_operators_that_the_package_declares_keep_its_rules():
    assert Tag.pt2_compliant_tag in ops.aten.hspmm.default.tags
    library = Library("aten", "FRAGMENT")
    library.define("tag_of_a_program(Tensor x) -> Tensor")
    assert ops.aten.tag_of_a_program.default.tags == []
    library._destroy()
    define("aten::another_tag_of_a_program", "(Tensor x) -> Tensor")  # for the life of the process
    assert ops.aten.another_tag_of_a_program.default.tags == []
