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
	useGoodbye  = 5 * time.Second // for the last time
)

// noteUse remembers when a key was used last, until that is written. A busy key is noted
// once in [KeyCacheTTL], when it is read from the store. Where more keys are in use than
// there is room for, all are forgotten: it is for people to look at.
func (c *core) noteUse(use KeyUse) {
	if last, known := c.uses.get(use.ID); !known || use.At.After(last.At) {
		c.uses.put(use.ID, use)
	}
}

// WriteUses writes when keys were used last ([Key.LastUsedAt]). [Service.Run] calls it
// every minute, and when it ends. What it can't write is left for the next call. Uses
// that are not written yet are lost when the process is killed: they are for people to
// look at.
func (k Keys) WriteUses(ctx context.Context) (err error) {
	defer k.s.span(&ctx, "Keys.WriteUses").end(&err)
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

// writeUses writes uses of keys until ctx ends, and then what is left.
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
