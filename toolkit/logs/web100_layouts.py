"""The variables of WEB100's kernels, in the order of their records: versions 2.5.2, 2.5.3 and 2.5.27.

`NAME:TYPE` with the type's number of docs/logs.md. Offsets follow, because records have no alignment. A name that
begins with `_` is the older name of another variable.
"""

from __future__ import annotations

from typing import NamedTuple

_SPEC = "_RemotePort:8 _RemoteAddress:9 RemPort:8 RemAddress:9 LocalPort:8 LocalAddress:9 LocalAddressType:0"
_READ = """
X_RcvRTT:4 _RemotePort:8 RemPort:8 _RemoteAddress:9 RemAddress:9 LocalPort:8 LocalAddress:9 LocalAddressType:0
MinRwinRcvd:4 MaxRwinRcvd:4 _CurrentRwinRcvd:4 CurRwinRcvd:4 X_dbg4:4 X_dbg3:4 X_dbg2:4 X_dbg1:4 X_wnd_clamp:4
X_rcv_ssthresh:4 MaxAppRQueue:4 CurAppRQueue:4 MaxReasmQueue:4 CurReasmQueue:4 _Rcvbuf:4 DupAcksOut:3
LimRwin:4 MinRwinSent:4 MaxRwinSent:4 _CurrentRwinSent:4 CurRwinSent:4 MaxAppWQueue:4 CurAppWQueue:4
_MaxRetranQueue:4 MaxRetxQueue:4 _CurRetranQueue:4 CurRetxQueue:4 X_Rcvbuf:4 X_Sndbuf:4 _Sndbuf:4 MinMSS:4
MaxMSS:4 _CurrentMSS:4 CurMSS:4 MinRTO:4 MaxRTO:4 _CurrentRTO:4 CurRTO:4 CountRTT:3 SumRTT:7 MinRTT:4 MaxRTT:4
RTTVar:4 SmoothedRTT:4 _SampledRTT:4 SampleRTT:4 DSACKDups:3 AckAfterFR:3 NonRecovDA:3 RetranThresh:4
QuenchRcvd:3 SendStall:3 ECERcvd:3 PostCongCountRTT:3 PostCongSumRTT:3 _PreCongCountRTT:3 PreCongSumRTT:3
_SumCwndAtCong:3 PreCongSumCwnd:3 SACKBlocksRcvd:3 SACKsRcvd:3 DupAcksIn:3 BytesRetrans:3 PktsRetrans:3
AbruptTimeouts:3 _CurrTimeoutCount:4 CurTimeoutCount:4 SubsequentTimeouts:3 Timeouts:3 FastRetran:3
MinSsthresh:4 MaxSsthresh:4 LimCwnd:4 _CurrentSsthresh:4 CurSsthresh:4 MaxCwnd:4 _CurrentCwnd:4 CurCwnd:4
_Recoveries:3 CongestionOverCount:3 X_OtherReductionsCM:3 X_OtherReductionsCV:3 OtherReductions:3
CongestionSignals:3 CongAvoid:3 SlowStart:3 SndLimTimeRwin:3 SndLimBytesRwin:7 SndLimTransRwin:3
SndLimTimeCwnd:3 SndLimBytesCwnd:7 SndLimTransCwnd:3 SndLimTimeSender:3 SndLimBytesSender:7
SndLimTransSender:3 _CurrTime:7 Duration:7 StartTimeUsec:1 StartTimeSec:1 _StartTime:1 _RecvWraps:3 RecvISS:3
ThruBytesReceived:7 _rcv_nxt:3 RcvNxt:3 _SendWraps:3 SndISS:3 _ThruBytesSent:7 ThruBytesAcked:7 _snd_max:3
_snd_nxt:3 _snd_una:3 SndMax:3 SndNxt:5 SndUna:3 DataBytesIn:7 _AckPktsIn:3 DataPktsIn:3 PktsIn:3
DataBytesOut:7 _AckPktsOut:3 DataPktsOut:3 PktsOut:3 WinScaleSent:0 WinScaleRcvd:0 MSSRcvd:4 ActiveOpen:0
RcvWinScale:0 SndWinScale:0 ECNEnabled:0 NagleEnabled:0 TimestampsEnabled:0 SACKEnabled:0 State:0
"""
_TUNE = "WAD_CwndAdjust:1 WAD_NoAI:0 WAD_MaxSsthresh:4 WAD_MaxBurst:4 WAD_IFQ:4 CurMSS:4 State:0 X_Rcvbuf:4 X_Sndbuf:4"
_OLD_TUNE = (
    "WAD_Kaicnt:1 WAD_CwndAdjust:1 WAD_NoAI:0 WAD_MD:4 WAD_AI:4 WAD_FloydAIMD:4 WAD_MaxSsthresh:4 WAD_MaxBurst:4"
)
_SIGNED = {"_snd_nxt:3": "_snd_nxt:1", "SndNxt:5": "SndNxt:1"}


class Field(NamedTuple):
    """A variable: its name and the number of its type."""

    name: str
    type: int


class Layout(NamedTuple):
    """A kernel's version, and the groups of variables that it logs."""

    version: str
    groups: dict[str, tuple[Field, ...]]


def _fields(text: str) -> tuple[Field, ...]:
    return tuple(Field(name, int(number)) for name, _, number in (word.partition(":") for word in text.split()))


def _signed(text: str) -> str:
    """The older kernels log SndNxt as signed."""
    return " ".join(_SIGNED.get(word, word) for word in text.split())


LAYOUTS = {
    "2.5.2": Layout(
        "2.5.2 200412251814 net100",
        {
            "spec": _fields(_SPEC),
            "read": _fields(_signed(_READ).replace("MinSsthresh:4", "LimSsthresh:4 MinSsthresh:4")),
            "tune": _fields(f"{_OLD_TUNE} WAD_IFQ:4 CurMSS:4 X_Rcvbuf:4 X_Sndbuf:4 LimRwin:4 LimSsthresh:4 LimCwnd:4"),
        },
    ),
    "2.5.3": Layout(
        "2.5.3 200503022351 net100",
        {
            "spec": _fields(_SPEC),
            "read": _fields(_signed(_READ)),
            "tune": _fields(f"{_OLD_TUNE} WAD_IFQ:4 CurMSS:4 State:0 X_Rcvbuf:4 X_Sndbuf:4 LimRwin:4 LimCwnd:4"),
        },
    ),
    "2.5.27": Layout(
        "2.5.27 201001301335 net100",
        {"spec": _fields(_SPEC), "read": _fields(_READ), "tune": _fields(f"{_TUNE} LimRwin:4 LimCwnd:4")},
    ),
}
"""Layouts by version, as logs of these kernels give them."""
