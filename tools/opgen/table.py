"""The operator table: loading, checking and expanding the rows of src/ops/*.toml into operators."""

import difflib
import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

import schema as sch
from formulas import unknown_word

ROW_KEYS = {
    "schema", "python", "out", "inplace", "aliases", "doc", "samples", "grad", "jvp", "nondiff", "tags",
