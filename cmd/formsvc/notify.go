package main

import "net"

// notify reports the state to systemd at a socket, for units with Type=notify (sd_notify(3)). Errors are ignored: they are no reason
// to stop.
func notify(path, state string) {
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
