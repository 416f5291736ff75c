package main

import (
	"os"
	"path/filepath"
)

// servingFile is the file under --data with the base URL of the server that uses the directory. It exists while the server
// runs, and remains after a kill.
const servingFile = "serving"

// noteServing writes the base URL of this server for commands on this machine. Without a data directory it does nothing. Of
// several servers with one directory, the last one wins.
func (g *global) noteServing(baseURL string) (forget func(), err error) {
	if _, err := os.Stat(g.Data); err != nil {
		return func() {}, nil //nolint:nilerr // there is no directory
	}
	path := filepath.Join(g.Data, servingFile)
	err = os.WriteFile(path, []byte(baseURL), 0o600)
	return func() {
		if g.whereServing() == baseURL {
			_ = os.Remove(path)
		}
	}, err
}

// whereServing returns the base URL of the server that uses --data, or "" if none does.
func (g *global) whereServing() string {
	text, _ := os.ReadFile(filepath.Join(g.Data, servingFile)) // usually it doesn't exist
	return string(text)
}
