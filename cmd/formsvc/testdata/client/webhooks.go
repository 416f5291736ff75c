package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/client/api"
)

// secret signs the deliveries of the first webhook.
const secret = "a secret of the driver, äöü"

// everything returns all event types.
func everything() []api.EventType {
	return []api.EventType{
		api.EventTypeResponseCreated, api.EventTypeResponseUpdated, api.EventTypeResponseStatusChanged,
		api.EventTypeResponseCompleted, api.EventTypeSignatureCompleted, api.EventTypeFileUploaded,
		api.EventTypeResponseDeleted,
	}
}

// subscribe creates a webhook for all events, twice: the second call returns the first webhook.
func (d *driver) subscribe(ctx context.Context) {
	in := api.WebhookInput{
		Url: d.receiver.url + allPath, Events: everything(), Secret: new(secret),
		Headers: &map[string]*string{"X-Token": new("t")},
	}
	d.receiver.expect(allPath, secret)
	created, err := d.CreateWebhookWithResponse(ctx, nil, in)
	d.check(created, err, http.StatusCreated)
	equalTo("createWebhook: secret", created.JSON201.Secret, secret)
	equal("createWebhook: events", len(created.JSON201.Events), 7)
	equal("createWebhook: campaignUuid", created.JSON201.CampaignUuid, nil)
	_, ok := created.JSON201.Headers["X-Token"]
	equal("createWebhook: headers has X-Token", ok, true)

	again, err := d.CreateWebhookWithResponse(ctx, nil, in)
	d.check(again, err, http.StatusOK)
	equal("createWebhook: uuid", again.JSON200.Uuid, created.JSON201.Uuid)
	in.Secret = new("another secret altogether")
	other, err := d.CreateWebhookWithResponse(ctx, nil, in)
	d.check(other, err, http.StatusConflict)
	equal("createWebhook: code", other.ApplicationproblemJSON409.Code, api.WebhookConflictProblemCodeWebhookExists)
}

// events compares the list of all events with the webhook's deliveries.
func (d *driver) events(ctx context.Context) {
	// Five responses, one of them changed and then completed, two files, two signatures.
	const want = responseCount + 3 + 2 + 2
	var listed []api.EventUuid
	params := &api.ListEventsParams{Limit: new(3)}
	for more := true; more || len(listed) < want; {
		if !more {
			pause(ctx, "listEvents: all events")
		}
		list, err := d.ListEventsWithResponse(ctx, params)
		d.check(list, err, http.StatusOK)
		for _, event := range list.JSON200.Items {
			value, err := opened(event)
			if err != nil {
				fail("listEvents: %v", err)
			}
			listed = append(listed, d.checkEvent(value))
		}
		params.Cursor, more = list.JSON200.NextCursor, *list.JSON200.More
	}
	equal("listEvents: how many", len(listed), want)
	newest, err := d.ListEventsWithResponse(ctx, &api.ListEventsParams{Limit: new(2), Order: new(api.SortOrderDesc)})
	d.check(newest, err, http.StatusOK)
	for i, event := range newest.JSON200.Items {
		value, err := opened(event)
		if err != nil {
			fail("listEvents: the newest: %v", err)
		}
		equal("listEvents: the newest", d.checkEvent(value), listed[len(listed)-1-i])
	}
	equal("listEvents: how many of the newest", len(newest.JSON200.Items), 2)
	var arrived []api.EventUuid
	for range listed {
		a := d.receiver.next(ctx, "one of the events that are listed")
		arrived = append(arrived, d.checkEvent(a.event))
		equal("webhook: webhook-id", a.WebhookId, arrived[len(arrived)-1])
		equal("webhook: x-service-attempt", a.XServiceAttempt, 1)
		equal("webhook: webhook-timestamp is now", time.Since(time.Unix(int64(a.WebhookTimestamp), 0)).Abs() < time.Hour, true)
	}
	for _, uuid := range listed {
		equal("webhook: "+uuid.String()+" came", slices.Contains(arrived, uuid), true)
	}

	list, err := d.ListEventsWithResponse(ctx, &api.ListEventsParams{
		Event: &[]api.EventType{api.EventTypeFileUploaded, api.EventTypeSignatureCompleted},
	})
	d.check(list, err, http.StatusOK)
	equal("listEvents: how many of two types", len(list.JSON200.Items), 4)
}

// checkEvent checks the specific fields of each event type, and returns the event's identifier.
func (d *driver) checkEvent(event any) api.EventUuid {
	switch e := event.(type) {
	case api.ResponseCreatedEvent:
		equal("response.created: data.response.status", e.Data.Response.Status, "pending")
		equal("response.created: data.response.responses", len(given("response.created: data.response.responses", e.Data.Response.Responses)), 2)
		return e.Id
	case api.ResponseUpdatedEvent:
		changes := slices.Sorted(slices.Values(given("response.updated: data.changes", e.Data.Changes)))
		equal("response.updated: data.changes", strings.Join(changes, " "), "/responses/age /responses/colour")
		return e.Id
	case api.ResponseStatusChangedEvent:
		equal("response.status_changed: data.previousStatus", e.Data.PreviousStatus, "pending")
		return e.Id
	case api.ResponseCompletedEvent:
		equal("response.completed: data.response.status", e.Data.Response.Status, "completed")
		equal("response.completed: data.response.completedAt is there", e.Data.Response.CompletedAt != nil, true)
		return e.Id
	case api.SignatureCompletedEvent:
		equal("signature.completed: data.signature.signer.email", string(e.Data.Signature.Signer.Email), "ada@example.com")
		equal("signature.completed: data.campaign.title", e.Data.Campaign.Title, "Colours, once more")
		return e.Id
	case api.FileUploadedEvent:
		equal("file.uploaded: data.file.responseUuid", e.Data.File.ResponseUuid, e.Data.Response.Uuid)
		return e.Id
	case api.ResponseDeletedEvent:
		return e.Id
	default:
		fail("an event is a %T", event)
		panic("unreachable")
	}
}

// webhooks manages a webhook whose receiver is down at first.
func (d *driver) webhooks(ctx context.Context, campaign api.Uuid) {
	created, err := d.CreateWebhookWithResponse(ctx, nil, api.WebhookInput{
		Url: d.receiver.url + downPath, Events: []api.EventType{api.EventTypeResponseCreated}, CampaignUuid: &campaign,
	})
	d.check(created, err, http.StatusCreated)
	uuid := created.JSON201.Uuid
	equalTo("createWebhook: campaignUuid", created.JSON201.CampaignUuid, campaign)

	read, err := d.GetWebhookWithResponse(ctx, uuid, nil)
	d.check(read, err, http.StatusOK)
	unchanged, err := d.GetWebhookWithResponse(ctx, uuid, &api.GetWebhookParams{IfNoneMatch: &read.Headers200.ETag})
	d.check(unchanged, err, http.StatusNotModified)
	replaced, err := d.ReplaceWebhookWithResponse(ctx, uuid, &api.ReplaceWebhookParams{IfMatch: &read.Headers200.ETag}, api.WebhookReplacement{
		Uuid: uuid, Url: read.JSON200.Url, Events: []api.EventType{api.EventTypeFileUploaded, api.EventTypeResponseCreated},
	})
	d.check(replaced, err, http.StatusOK)
	equal("replaceWebhook: events", len(replaced.JSON200.Events), 2)
	equal("replaceWebhook: campaignUuid", replaced.JSON200.CampaignUuid, nil)

	d.rotate(ctx, uuid, given("createWebhook: secret", created.JSON201.Secret))
	d.deliver(ctx, uuid, campaign)

	list, err := d.ListWebhooksWithResponse(ctx, nil)
	d.check(list, err, http.StatusOK)
	equal("listWebhooks: total", list.JSON200.Total, 2)
	for range 2 {
		deleted, err := d.DeleteWebhookWithResponse(ctx, uuid)
		d.check(deleted, err, http.StatusNoContent)
	}
	read, err = d.GetWebhookWithResponse(ctx, uuid, nil)
	d.check(read, err, http.StatusNotFound)
}

// rotate gives a webhook a new secret at once.
func (d *driver) rotate(ctx context.Context, uuid api.Uuid, old string) {
	later, err := d.RotateWebhookWithResponse(ctx, uuid, nil, api.RotationInput{})
	d.check(later, err, http.StatusOK)
	equal("rotateWebhook: previousSecretExpiresAt is there", later.JSON200.PreviousSecretExpiresAt != nil, true)
	once := &api.RotateWebhookParams{IdempotencyKey: new("rotation-1")}
	now, err := d.RotateWebhookWithResponse(ctx, uuid, once, api.RotationInput{GracePeriodSeconds: new(0)})
	d.check(now, err, http.StatusOK)
	equal("rotateWebhook: previousSecretExpiresAt", now.JSON200.PreviousSecretExpiresAt, nil)
	fresh := given("rotateWebhook: secret", now.JSON200.Secret)
	equal("rotateWebhook: secret is new", fresh != old && fresh != given("rotateWebhook: secret", later.JSON200.Secret), true)
	d.receiver.expect(downPath, fresh)
	again, err := d.RotateWebhookWithResponse(ctx, uuid, once, api.RotationInput{GracePeriodSeconds: new(0)})
	d.check(again, err, http.StatusOK)
	equalTo("rotateWebhook: Idempotent-Replayed", again.Headers200.IdempotentReplayed, "true")
	equal("rotateWebhook: secret of the repeated answer", again.JSON200.Secret, nil)
}

// deliver lets the delivery of an event fail, and sends it again when the receiver is up.
func (d *driver) deliver(ctx context.Context, uuid, campaign api.Uuid) {
	failed := d.failToDeliver(ctx, uuid, campaign)
	d.receiver.repair()
	all, err := d.RedeliverFailedWithResponse(ctx, uuid, nil, api.RedeliverInput{Since: failed.CreatedAt})
	d.check(all, err, http.StatusOK)
	equal("redeliverFailed: redelivered", all.JSON200.Redelivered, 1)
	arrived := d.receiver.next(ctx, "what was sent again")
	equal("webhook: x-service-delivery", arrived.XServiceDelivery, failed.Uuid)
	equal("webhook: x-service-attempt", arrived.XServiceAttempt, 3)
	d.delivered(ctx, failed.Uuid)

	one, err := d.RedeliverWithResponse(ctx, failed.Uuid, nil, api.Nothing{})
	d.check(one, err, http.StatusOK)
	equal("redeliver: state", one.JSON200.State, api.DeliveryStatePending)
	equal("webhook: webhook-id", d.receiver.next(ctx, "what was sent once more").WebhookId, failed.EventUuid)

	test, err := d.TestWebhookWithResponse(ctx, uuid, nil, api.Nothing{})
	d.check(test, err, http.StatusCreated)
	equalTo("testWebhook: test", test.JSON201.Test, true)
	arrived = d.receiver.next(ctx, "the test event")
	equal("webhook: x-service-delivery", arrived.XServiceDelivery, test.JSON201.Uuid)
	d.delivered(ctx, test.JSON201.Uuid)
}

// failToDeliver raises an event for a webhook that is down, and returns the delivery when it has permanently failed.
func (d *driver) failToDeliver(ctx context.Context, uuid, campaign api.Uuid) api.Delivery {
	made, err := d.CreateResponseWithResponse(ctx, campaign, nil, api.ResponseInput{
		User: &api.RespondentInput{Email: new("ada@example.com")}, Responses: answers("red"),
	})
	d.check(made, err, http.StatusCreated)
	d.receiver.next(ctx, "the event for the first webhook")
	for {
		list, err := d.ListDeliveriesWithResponse(ctx, uuid, &api.ListDeliveriesParams{State: new(api.DeliveryStateFailed)})
		d.check(list, err, http.StatusOK)
		if list.JSON200.Total == 0 {
			pause(ctx, "listDeliveries: the one that failed")
			continue
		}
		failed := list.JSON200.Items[0]
		equal("listDeliveries: items/0/event", failed.Event, api.EventTypeResponseCreated)
		equal("listDeliveries: items/0/attemptCount", failed.AttemptCount, 2)
		equal("listDeliveries: items/0/nextAttemptAt", failed.NextAttemptAt, nil)
		last := failed.Attempts[1]
		equal("listDeliveries: items/0/attempts/1/number", last.Number, 2)
		equalTo("listDeliveries: items/0/attempts/1/status", last.Status, http.StatusServiceUnavailable)
		equal("listDeliveries: items/0/attempts/1/answer", last.Answer, "not now\n")
		equal("listDeliveries: items/0/attempts/1/error is there", last.Error != nil, true)
		return failed
	}
}

// delivered waits until the service knows that a delivery arrived.
func (d *driver) delivered(ctx context.Context, uuid api.Uuid) {
	for {
		read, err := d.GetDeliveryWithResponse(ctx, uuid, nil)
		d.check(read, err, http.StatusOK)
		if last := len(read.JSON200.Attempts); read.JSON200.State == api.DeliveryStateDelivered {
			equalTo("getDelivery: the status of the last attempt", read.JSON200.Attempts[last-1].Status, http.StatusOK)
			equal("getDelivery: the error of the last attempt", read.JSON200.Attempts[last-1].Error, nil)
			return
		}
		pause(ctx, "getDelivery: state delivered")
	}
}

// pause waits a moment, and fails when patience has run out.
func pause(ctx context.Context, what string) {
	select {
	case <-time.After(200 * time.Millisecond):
	case <-ctx.Done():
		fail("%s did not come", what)
	}
}
