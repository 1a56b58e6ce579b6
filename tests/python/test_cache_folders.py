"""Folders with compiled extensions: code that others could have put there is not loaded."""

import os
import stat

import pytest
from cresset.utils import cpp_extension


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    return tmp_path / "extensions"


def folder():
    return cpp_extension._get_build_directory("some_extension", verbose=False)


def test_new_folders_belong_to_their_user_alone(root):
    made = folder()
    assert made == str(root / "some_extension") == folder()
    for place in (root, made):
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o700


@pytest.mark.parametrize("place", ["extensions", "extensions/some_extension"])
def test_folders_that_others_can_write_are_refused(root, place):
    folder()
    os.chmod(root.parent / place, 0o777)
    with pytest.raises(PermissionError, match=r"written to by other users.*chmod go-w"):
        folder()


def test_a_root_like_tmp_is_fine(root):
    folder()
    os.chmod(root, 0o1777)
    folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folders_of_others_are_refused(root):
    os.chown(folder(), 12345, -1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        folder()
