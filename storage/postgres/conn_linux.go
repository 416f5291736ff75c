package postgres

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall doesn't have.
const tcpUserTimeout = 0x12

// limitUnacknowledged sets how long sent bytes may be unacknowledged.
func limitUnacknowledged(fd uintptr) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(ackLimit.Milliseconds()))
}
