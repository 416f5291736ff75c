package main

import (
	"net"
	"os"
)

// notify tells the process manager how far we are, if it wants to know: systemd, for
// units with Type=notify (sd_notify(3)). That it can't be told is no reason to stop.
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
