"""What reports say, as tables, and with matplotlib as plots."""

from collections import OrderedDict

import cresset

__all__ = ["ModelReportVisualizer"]

_MISSING = "Not Applicable"


def _of_channels(value):
    return isinstance(value, list) or isinstance(value, cresset.Tensor) and value.dim() > 0


def _plain(value):
    return value.item() if isinstance(value, cresset.Tensor) else value


class ModelReportVisualizer:
    """Tables and plots of {module: {feature: value}}. Filters are parts of the names of features and modules."""

    TABLE_TENSOR_KEY = "tensor_level_info"
    TABLE_CHANNEL_KEY = "channel_level_info"
    NUM_NON_FEATURE_TENSOR_HEADERS = 2
    NUM_NON_FEATURE_CHANNEL_HEADERS = 3
    CHANNEL_NUM_INDEX = 2

    def __init__(self, generated_reports):
        self.generated_reports = generated_reports

    def get_all_unique_module_fqns(self):
        """The modules' names."""
        return set(self.generated_reports)

    def get_all_unique_feature_names(self, plottable_features_only=True):
        """The features' names; only those whose values are tensors, unless not wished so."""
        return {
            name for features in self.generated_reports.values() for name, value in features.items() if not plottable_features_only or type(value) is cresset.Tensor
        }

    def _get_filtered_data(self, feature_filter, module_fqn_filter):
        found = OrderedDict()
        for module, features in self.generated_reports.items():
            if module_fqn_filter in module:
                chosen = {name: value for name, value in features.items() if feature_filter in name}
                if chosen:
                    found[module] = chosen
        return found

    def generate_filtered_tables(self, feature_filter="", module_fqn_filter=""):
        """{TABLE_TENSOR_KEY: (headers, rows), TABLE_CHANNEL_KEY: (headers, rows)}: features of whole modules, and those of each channel."""
        data = self._get_filtered_data(feature_filter, module_fqn_filter)
        names = sorted({(name, _of_channels(value)) for features in data.values() for name, value in features.items()})
        whole, each = ([name for name, of_channels in names if of_channels == wanted] for wanted in (False, True))
        tensors, channels = [], []
        for module, features in data.items():
            if whole:
                tensors.append([len(tensors), module, *(_plain(features.get(name, _MISSING)) for name in whole)])
            for i in range(max((len(features[name]) for name in each if name in features), default=0)):
                values = [features.get(name, ()) for name in each]
                channels.append([len(channels), module, i, *(_plain(v[i]) if i < len(v) else _MISSING for v in values)])
        return {
            self.TABLE_TENSOR_KEY: (["idx", "layer_fqn", *whole] if whole else [], tensors),
            self.TABLE_CHANNEL_KEY: (["idx", "layer_fqn", "channel", *each] if each else [], channels),
        }

    def generate_table_visualization(self, feature_filter="", module_fqn_filter=""):
        """Print both tables, if the package tabulate is there."""
        try:
            from tabulate import tabulate
        except ImportError:
            print("Make sure to install tabulate and try again.")
            return
        tables = self.generate_filtered_tables(feature_filter, module_fqn_filter)
        for title, key in (("Tensor Level Information", self.TABLE_TENSOR_KEY), ("Channel Level Information", self.TABLE_CHANNEL_KEY)):
            headers, rows = tables[key]
            if rows:
                print(f"{title}\n{tabulate(rows, headers=headers)}")

    def _get_plottable_data(self, feature_filter, module_fqn_filter):
        """(numbers of modules, values or lists of those of each channel, is it of channels). ValueError unless there is one feature of numbers."""
        data = self._get_filtered_data(feature_filter, module_fqn_filter)
        names = {name for features in data.values() for name in features}
        if len(names) != 1:
            raise ValueError(f"The filter must leave one feature to plot; it leaves {sorted(names) or 'none'}.")
        (name,) = names
        values = [features[name] for features in data.values()]
        of_channels = _of_channels(values[0])
        numbers = [v.tolist() if isinstance(v, cresset.Tensor) else v for v in values]
        if not all(isinstance(n, (int, float)) for v in numbers for n in (v if of_channels else [v])):
            raise ValueError(f"The feature {name} has no numbers to plot.")
        return list(range(len(numbers))), numbers, of_channels

    def _pyplot(self):
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            print("make sure to install matplotlib and try again.")
            return None
        return plt

    def generate_plot_visualization(self, feature_filter, module_fqn_filter=""):
        """A line of a feature's values over the modules, one for each channel, if matplotlib is there."""
        plt = self._pyplot()
        if plt is None:
            return
        x, values, of_channels = self._get_plottable_data(feature_filter, module_fqn_filter)
        plt.figure()
        for i in range(max(map(len, values)) if of_channels else 1):
            at = [k for k in x if not of_channels or i < len(values[k])]
            plt.plot(at, [values[k][i] if of_channels else values[k] for k in at], label=f"Channel {i}" if of_channels else None)
        plt.xlabel("idx")
        plt.ylabel(feature_filter)
        plt.title(feature_filter)
        if of_channels:
            plt.legend()
        plt.show()

    def generate_histogram_visualization(self, feature_filter, module_fqn_filter="", num_bins=10):
        """How often a feature has which values, one for each channel, if matplotlib is there."""
        plt = self._pyplot()
        if plt is None:
            return
        _, values, of_channels = self._get_plottable_data(feature_filter, module_fqn_filter)
        plt.figure()
        for i in range(max(map(len, values)) if of_channels else 1):
            plt.hist([v[i] for v in values if i < len(v)] if of_channels else values, bins=num_bins, label=f"Channel {i}" if of_channels else None)
        plt.xlabel(feature_filter)
        plt.ylabel("Frequency")
        plt.title(feature_filter)
        if of_channels:
            plt.legend()
        plt.show()
