package chart

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFiles writes a file for each sheet that has something to draw.
func WriteFiles(dir string, list []Sheet) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("charts: %w", err)
	}
	for i := range list {
		if len(list[i].Drawn()) == 0 {
			continue
		}
		file := filepath.Join(dir, list[i].File())
		if err := os.WriteFile(file, list[i].chart(), 0o600); err != nil {
			return fmt.Errorf("charts: %w", err)
		}
	}
	return nil
}

// File names the sheet's chart.
func (s *Sheet) File() string { return s.Name + ".svg" }
