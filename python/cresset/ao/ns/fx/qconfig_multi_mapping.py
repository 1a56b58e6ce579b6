"""Several QConfigs for the same places, as several mappings of one each."""

import copy

from cresset.ao.quantization.qconfig import qconfig_equals
from cresset.ao.quantization.qconfig_mapping import _QCONFIG_STYLE_ORDER, QConfigMapping

__all__ = ["QConfigMultiMapping"]


def _without_repetitions(qconfigs):
    """Each QConfig once, and no None."""
    kept = []
    for qconfig in qconfigs:
        if qconfig is not None and not any(qconfig_equals(qconfig, one) for one in kept):
            kept.append(qconfig)
    return kept


class QConfigMultiMapping:
    """Lists of QConfigs by what they are for: `qconfig_mappings_list[i]` is the QConfigMapping of the ith of each list. Shorter lists are filled with None."""

    def __init__(self):
        self.qconfig_mappings_list = [QConfigMapping()]

    def _grow(self, count):
        """At least so many mappings; a new one has None for each place that the first one has."""
        while len(self.qconfig_mappings_list) < count:
            made = QConfigMapping()
            for style in _QCONFIG_STYLE_ORDER[1:]:
                places = getattr(self.qconfig_mappings_list[0], style)
                setattr(made, style, type(places)(dict.fromkeys(places)))
            self.qconfig_mappings_list.append(made)

    def _set(self, setter, place, qconfigs):
        kept = _without_repetitions(qconfigs)
        self._grow(len(kept))
        for number, mapping in enumerate(self.qconfig_mappings_list):
            getattr(mapping, setter)(*place, kept[number] if number < len(kept) else None)
        return self

    def set_global(self, global_qconfig_list):
        """The defaults."""
        return self._set("set_global", (), global_qconfig_list)

    def set_object_type(self, object_type, qconfig_list):
        """For a class, a function, or a method by its name."""
        return self._set("set_object_type", (object_type,), qconfig_list)

    def set_module_name_regex(self, module_name_regex, qconfig_list):
        """For modules whose name matches."""
        return self._set("set_module_name_regex", (module_name_regex,), qconfig_list)

    def set_module_name(self, module_name, qconfig_list):
        """For the module of that name and those below it."""
        return self._set("set_module_name", (module_name,), qconfig_list)

    def set_module_name_object_type_order(self, module_name, object_type, index, qconfig_list):
        """For the nth function of that kind within the module of that name."""
        return self._set("set_module_name_object_type_order", (module_name, object_type, index), qconfig_list)

    def __repr__(self):
        return f"{type(self).__name__} [" + "".join(f"\n{mapping!r}," for mapping in self.qconfig_mappings_list) + "\n]"

    @classmethod
    def from_list_qconfig_mapping(cls, qconfig_mapping_list):
        """Of QConfigMappings; what is None in one is as if it stood last."""
        given = [copy.deepcopy(mapping) for mapping in qconfig_mapping_list]
        made = cls()
        made.set_global([mapping.global_qconfig for mapping in given])
        for style in _QCONFIG_STYLE_ORDER[1:]:
            places = dict.fromkeys(place for mapping in given for place in getattr(mapping, style))
            for place in places:
                of_place = [getattr(mapping, style).get(place) for mapping in given]
                getattr(made, "set_" + style.removesuffix("_qconfigs"))(*(place if isinstance(place, tuple) else (place,)), of_place)
        return made
