package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"time"
)

// servingFile is the file under --data with the address of the server that uses the directory. It exists while the server
// runs, and remains after a kill.
const servingFile = "serving.json"

// A serving is the content of that file.
type serving struct {
	BaseURL string `json:"baseUrl"`
	Addr    string `json:"addr"` // the address that it listens on
}

// noteServing writes the address of this server for commands on this machine. Without a data directory it does nothing. Of
// several servers with one directory, the last one wins.
func (g *global) noteServing(s serving) (forget func(), err error) {
	if _, err := os.Stat(g.Data); err != nil {
		return func() {}, nil //nolint:nilerr // there is no directory
	}
	path := filepath.Join(g.Data, servingFile)
	note, err := json.Marshal(s)
	if err != nil {
		return func() {}, err
	}
	err = os.WriteFile(path, note, 0o600)
	return func() {
		if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, note) { //nolint:gosec // below --data
			_ = os.Remove(path)
		}
	}, err
}

// whereServing returns the address of the server that uses --data, and whether that server is running.
func (g *global) whereServing(ctx context.Context) (s serving, running bool) {
	note, err := os.ReadFile(filepath.Join(g.Data, servingFile))
	if err != nil || json.Unmarshal(note, &s) != nil {
		return serving{}, false
	}
	dialer := net.Dialer{Timeout: 2 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return s, false
	}
	_ = conn.Close()
	return s, true
}
