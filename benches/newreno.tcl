# One newreno flow over two hops in ns-2, beside which bench_engine.py holds the engine: newreno.tcl SECONDS TRACE
# TRACE, if not empty, is the file into which every packet's way is written.
# Prints data packets sent, nanoseconds on the processor, and kB by which the greatest size exceeds that at the start.

set seconds [lindex $argv 0]

proc kilobytes {field} {
    set status [open /proc/self/status]
    regexp "$field:\\s+(\\d+)" [read $status] whole number
    close $status
    return $number
}

proc on_cpu {} {
    set schedstat [open /proc/self/schedstat]
    set nanoseconds [lindex [read $schedstat] 0]
    close $schedstat
    return $nanoseconds
}

proc finish {tcp size begin} {
    puts "[$tcp set ndatapack_] [expr {[on_cpu] - $begin}] [expr {[kilobytes VmHWM] - $size}]"
    exit 0
}

set size [kilobytes VmRSS]
set begin [on_cpu]
# Only the headers in use: with all of them, the default, ns-2 takes twice the time and five times the memory.
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
set trace [lindex $argv 1]
if {$trace ne ""} {
    $ns trace-all [open $trace w]
}
foreach name {a b c} {
    set $name [$ns node]
}
$ns duplex-link $a $b 20Mb 125ms DropTail
$ns duplex-link $b $c 20Mb 125ms DropTail
foreach {from to} [list $a $b $b $c $c $b $b $a] {
    $ns queue-limit $from $to 1000
}

set loss [new ErrorModel]
$loss set rate_ 1e-6
$loss unit pkt
$loss ranvar [new RandomVariable/Uniform]
$loss drop-target [new Agent/Null]
$ns lossmodel $loss $a $b

# A data packet of 1500 octets: the header of 40 is added to packetSize_. window_ (20 by default) bounds the window
# and is the first ssthresh: 1800 fills the pipe of 833 packets and the queue, and never overflows it.
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 1800
Agent/TCP set tcpTick_ 0.1
set tcp [new Agent/TCP/Newreno]
set sink [new Agent/TCPSink]
$ns attach-agent $a $tcp
$ns attach-agent $c $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

$ns at 0.0 "$ftp start"
$ns at $seconds "finish $tcp $size $begin"
$ns run
