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

// servingFile is the file below --data that says where the server serves which uses that
// directory. It is there while the server runs, and after one that was killed.
const servingFile = "serving.json"

// A serving is what that file has.
type serving struct {
	BaseURL string `json:"baseUrl"`
	Addr    string `json:"addr"` // where it listens
}

// noteServing notes where this server serves, for commands on this machine. A node without
// a data directory notes nothing. Of several servers with one directory the last one is
// noted.
func (g *global) noteServing(s serving) (forget func(), err error) {
	if _, err := os.Stat(g.Data); err != nil {
		return func() {}, nil //nolint:nilerr // there is no place for it
	}
	path := filepath.Join(g.Data, servingFile)
	note, err := json.Marshal(s)
	if err != nil {
		return func() {}, err
	}
	f, err := os.CreateTemp(g.Data, servingFile+".*")
	if err != nil {
		return func() {}, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails once it is renamed
	if _, err = f.Write(note); err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return func() {
		if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, note) { //nolint:gosec // below --data
			_ = os.Remove(path)
		}
	}, err
}

// whereServing returns what the server noted that uses --data, and whether it is there.
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
