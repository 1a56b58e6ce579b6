"""LSTM layers of whole numbers."""

import cresset
from cresset.ao.nn import quantizable as nnqa

__all__ = ["LSTM"]


class LSTM(nnqa.LSTM):
    """A quantizable.LSTM whose parts are quantized."""

    _FLOAT_MODULE = nnqa.LSTM

    def _get_name(self):
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args, **kwargs):
        """Raises NotImplementedError: it is made of an observed quantizable.LSTM."""
        raise NotImplementedError(
            "Looks like you are trying to convert a non-observed LSTM module. Please, see the examples on quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other):
        """The quantized form of an observed quantizable.LSTM."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"type mismatch: {type(other)}; {cls._FLOAT_MODULE.__name__} was required")
        made = cresset.ao.quantization.convert(other, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        for layer in made.layers:
            for single in (layer.layer_fw, *([layer.layer_bw] if layer.bidirectional else [])):
                cell = single.cell
                cell.initial_hidden_state_qparams = (cell.ogate_cy.scale, cell.ogate_cy.zero_point)
                cell.initial_cell_state_qparams = (cell.fgate_cx_igate_cgate.scale, cell.fgate_cx_igate_cgate.zero_point)
        return made
