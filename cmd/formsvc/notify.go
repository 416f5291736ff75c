package main

import (
	"net"
	"os"
)

// notify reports the state to systemd, for units with Type=notify (sd_notify(3)). Errors are ignored: they are no reason
// to stop.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte(state))
}
