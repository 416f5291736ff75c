package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// writeCharts writes a file for each sheet that has something to draw.
func writeCharts(dir string, list []sheet) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil { //nolint:gosec // the user names the directory
		return fmt.Errorf("charts: %w", err)
	}
	for i := range list {
		if len(list[i].drawn()) == 0 {
			continue
		}
		file := filepath.Join(dir, list[i].file())
		if err := os.WriteFile(file, list[i].chart(), 0o600); err != nil { //nolint:gosec // the user names the directory
			return fmt.Errorf("charts: %w", err)
		}
	}
	return nil
}

// file names the sheet's chart.
func (s *sheet) file() string { return s.name + ".svg" }
