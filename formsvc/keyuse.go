package formsvc

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// A KeyUse says when a key was used.
type KeyUse struct {
	AccountID ID
	ID        ID // of the key
	At        time.Time
}

const (
	useInterval = time.Minute     // how often uses are written
	useGoodbye  = 5 * time.Second // time limit of the last write
)

// noteUse notes when a key was last used, until that is written. A busy key is noted once in
// [KeyCacheTTL], when it is read from the store. If there is no room, all notes are dropped, since
// they are only shown to people.
func (c *core) noteUse(use KeyUse) {
	if last, known := c.uses.get(use.ID); !known || use.At.After(last.At) {
		c.uses.put(use.ID, use)
	}
}

// WriteUses writes when keys were last used ([Key.LastUsedAt]). [Service.Run] calls it every
// minute, and when it ends. If it fails, the next call writes the same uses. If the process is
// killed, unwritten uses are lost.
func (k Keys) WriteUses(ctx context.Context) error {
	list := slices.Collect(maps.Values(k.s.uses.clear()))
	if len(list) == 0 {
		return nil
	}
	if err := k.s.store.UseKeys(ctx, list); err != nil {
		for _, use := range list {
			k.s.noteUse(use)
		}
		return fmt.Errorf("formsvc: uses of keys: %w", err)
	}
	return nil
}

// writeUses writes uses of keys regularly until ctx ends, and then once more.
func (k Keys) writeUses(ctx context.Context) {
	for pause(ctx, useInterval) {
		if err := k.WriteUses(ctx); err != nil && ctx.Err() == nil {
			k.s.logger.LogAttrs(ctx, slog.LevelError, "writing when keys were used failed", slog.Any("error", err))
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), useGoodbye)
	defer cancel()
	if err := k.WriteUses(last); err != nil {
		k.s.logger.LogAttrs(ctx, slog.LevelError, "writing when keys were used failed; it is lost", slog.Any("error", err))
	}
}
