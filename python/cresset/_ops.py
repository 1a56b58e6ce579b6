import types
from . import _C
class _Overload:
    def __init__(s, q, ov): s.q, s.ov = q, ov; s._op=_C._find_overload(q, ov)
    def __call__(s,*a,**k): return s._op(*a,**k)
class _Packet:
    def __init__(s,q): s.q=q
    def __getattr__(s,n): return _Overload(s.q, '' if n=='default' else n)
    def __call__(s,*a,**k): return _C._call_packet(s.q, a, k)
class _Ns:
    def __init__(s,n): s.n=n
    def __getattr__(s,n): return _Packet(f"{s.n}::{n}")
class _Ops:
    def __getattr__(s,n): return _Ns(n)
ops=_Ops()
