package bunstore

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// UseKeys implements formsvc.KeyStore. One statement for all uses, which come as an
// array of arrays: calling it costs more than what it does for each.
func (s *Store) UseKeys(ctx context.Context, uses []formsvc.KeyUse) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	latest := make(map[[2]formsvc.ID]int64, len(uses))
	for _, use := range uses {
		if checkIDs(use.AccountID, use.ID) != nil {
			continue // there is no such key
		}
		key := [2]formsvc.ID{use.AccountID, use.ID}
		if at, ok := latest[key]; !ok || at < micros(use.At) {
			latest[key] = micros(use.At)
		}
	}
	if len(latest) == 0 {
		return nil
	}
	text := []byte{'['}
	for key, at := range latest {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `["%s","%s",%d]`, key[0], key[1], at)
	}
	text = append(text, ']')
	return s.single(ctx, func(ctx context.Context, c bun.IConn) error {
		_, err := c.ExecContext(ctx, s.statements.UseKeys, string(text))
		return err
	})
}
