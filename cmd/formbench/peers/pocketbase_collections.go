package main

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"

	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
)

// The largest batch and the largest file. PocketBase's default for a file is 5 MB.
const (
	maxBatch = 50
	maxFile  = 2 << 30
)

// makeCollections creates the collections for responses, and for the records that a webhook delivery of each needs.
func makeCollections(app core.App) error {
	settings := app.Settings()
	settings.Batch.Enabled, settings.Batch.MaxRequests, settings.Batch.Timeout = true, maxBatch, 30
	if err := app.Save(settings); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	for _, c := range []*core.Collection{
		responses(pocketbase.Responses), responses(pocketbase.Private),
		collection(pocketbase.Events,
			&core.TextField{Name: "type"}, &core.TextField{Name: "response"}, &core.JSONField{Name: "payload"}),
		deliveries(),
		collection(pocketbase.Files,
			&core.TextField{Name: "response"}, &core.FileField{Name: "file", MaxSelect: 1, MaxSize: maxFile}),
	} {
		if c.Name != pocketbase.Private {
			c.CreateRule, c.ListRule, c.ViewRule = types.Pointer(""), types.Pointer(""), types.Pointer("")
		}
		if err := app.Save(c); err != nil {
			return fmt.Errorf("collection %s: %w", c.Name, err)
		}
	}
	return nil
}

func collection(name string, fields ...core.Field) *core.Collection {
	c := core.NewBaseCollection(name)
	c.Fields.Add(fields...)
	c.Fields.Add(&core.AutodateField{Name: "created", OnCreate: true})
	c.Fields.Add(&core.AutodateField{Name: "updated", OnCreate: true, OnUpdate: true})
	return c
}

func responses(name string) *core.Collection {
	c := collection(name,
		&core.TextField{Name: "reference"}, &core.TextField{Name: "status"}, &core.JSONField{Name: "user"},
		&core.JSONField{Name: "responses"}, &core.TextField{Name: "campaign"})
	c.AddIndex("idx_"+name+"_campaign", false, "campaign", "")
	return c
}

func deliveries() *core.Collection {
	c := collection(pocketbase.Deliveries,
		&core.TextField{Name: "event"}, &core.TextField{Name: "webhook"}, &core.TextField{Name: "state"},
		&core.DateField{Name: "due"})
	c.AddIndex("idx_deliveries_due", false, "due", "state = 'pending'")
	return c
}
