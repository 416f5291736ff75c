package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"example.com/client/api"
)

// responseCount is the number of created responses.
const responseCount = 5

// answers are the answers to a form.
func answers(colours ...string) map[string]api.AnswerInput {
	return map[string]api.AnswerInput{"colour": {Value: colours}, "age": {Value: []string{"36"}}}
}

// responses creates responses, changes one of them, which raises every event that is only about a response, and lists them.
// It returns the changed one.
func (d *driver) responses(ctx context.Context, campaign api.Uuid) api.Response {
	var last api.Response
	for range responseCount {
		created, err := d.CreateResponseWithResponse(ctx, campaign, nil, api.ResponseInput{
			User:      &api.RespondentInput{Email: new("ada@example.com"), FirstName: new("Ada"), LastName: new("Lovelace")},
			Responses: answers("red", "green"),
		})
		d.check(created, err, http.StatusCreated)
		last = *created.JSON201
		equal("createResponse: status", last.Status, "pending")
		equal("createResponse: user.email", string(last.User.Email), "ada@example.com")
		equal("createResponse: responses", strings.Join(last.Responses["colour"].Value, " "), "red green")
		equal("createResponse: campaignUuid", last.CampaignUuid, campaign)
		equal("createResponse: completedAt", last.CompletedAt, nil)
	}
	changed := d.changeResponse(ctx, last)
	d.listResponses(ctx, campaign)
	counted, err := d.GetCampaignWithResponse(ctx, campaign, nil)
	d.check(counted, err, http.StatusOK)
	equal("getCampaign: responseCount", counted.JSON200.ResponseCount, responseCount)
	return changed
}

// changeResponse changes the content of a response and then its status.
func (d *driver) changeResponse(ctx context.Context, r api.Response) api.Response {
	read, err := d.GetResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, nil)
	d.check(read, err, http.StatusOK)
	etag := read.Headers200.ETag
	unchanged, err := d.GetResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, &api.GetResponseParams{IfNoneMatch: &etag})
	d.check(unchanged, err, http.StatusNotModified)

	content := api.ResponsePatch{
		Uuid: r.Uuid, Reference: r.Reference, // ignored, like all read-only fields
		Responses: &map[string]*api.AnswerInput{"colour": {Value: []string{"green"}}, "age": nil},
	}
	updated, err := d.UpdateResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, &api.UpdateResponseParams{IfMatch: &etag}, content)
	d.check(updated, err, http.StatusOK)
	equal("updateResponse: responses", len(*updated.JSON200.Responses), 1)
	equal("updateResponse: reference", updated.JSON200.Reference, r.Reference)
	updated, err = d.UpdateResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, &api.UpdateResponseParams{IfMatch: &etag}, content)
	d.check(updated, err, http.StatusPreconditionFailed)

	updated, err = d.UpdateResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, nil, api.ResponsePatch{Status: new("completed")})
	d.check(updated, err, http.StatusOK)
	equal("updateResponse: status", updated.JSON200.Status, "completed")
	equal("updateResponse: completedAt is there", updated.JSON200.CompletedAt != nil, true)
	read, err = d.GetResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, nil)
	d.check(read, err, http.StatusOK)
	equal("getResponse: version", read.JSON200.UpdatedAt, updated.JSON200.UpdatedAt)
	return *read.JSON200
}

// deleteResponse deletes a response, which the first webhook is told of.
func (d *driver) deleteResponse(ctx context.Context, r api.Response) {
	refused, err := d.DeleteResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, &api.DeleteResponseParams{IfMatch: new(`"99"`)})
	d.check(refused, err, http.StatusPreconditionFailed)
	deleted, err := d.DeleteResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, nil)
	d.check(deleted, err, http.StatusNoContent)
	event, ok := d.receiver.next(ctx, "the event of the deletion").event.(api.ResponseDeletedEvent)
	equal("deleteResponse: an event of that type came", ok, true)
	equal("response.deleted: data.response.uuid", event.Data.Response.Uuid, r.Uuid)
	equal("response.deleted: data.response.reference", event.Data.Response.Reference, r.Reference)
	again, err := d.DeleteResponseWithResponse(ctx, r.CampaignUuid, r.Uuid, nil)
	d.check(again, err, http.StatusNotFound)
}

// listResponses turns the pages of filtered lists.
func (d *driver) listResponses(ctx context.Context, campaign api.Uuid) {
	first, err := d.ListResponsesWithResponse(ctx, campaign, &api.ListResponsesParams{Limit: new(1)})
	d.check(first, err, http.StatusOK)
	created := first.JSON200.Items[0].CreatedAt
	for _, f := range []struct {
		name   string
		params api.ListResponsesParams
		want   int
	}{
		{"one status", api.ListResponsesParams{Status: &[]string{"completed"}}, 1},
		{"two statuses", api.ListResponsesParams{Status: &[]string{"completed", "pending"}}, responseCount},
		{"email", api.ListResponsesParams{Email: new(api.Email("ada@example.com"))}, responseCount},
		{"email in other letters", api.ListResponsesParams{Email: new(api.Email("ADA@example.com"))}, 0},
		{"reference", api.ListResponsesParams{Reference: &first.JSON200.Items[0].Reference}, 1},
		{"created after the first", api.ListResponsesParams{CreatedAfter: new(created.AddDate(0, 0, -1))}, responseCount},
		{"created after the last", api.ListResponsesParams{CreatedAfter: &created}, 0},
		{"created before", api.ListResponsesParams{CreatedBefore: new(created.AddDate(0, 0, -1))}, 0},
		{"updated after", api.ListResponsesParams{UpdatedAfter: new(created.AddDate(0, 0, 1))}, 0},
	} {
		seen := map[api.Uuid]bool{}
		f.params.Limit = new(2)
		for {
			list, err := d.ListResponsesWithResponse(ctx, campaign, &f.params)
			d.check(list, err, http.StatusOK)
			for _, response := range list.JSON200.Items {
				seen[response.Uuid] = true
			}
			if f.params.Cursor = list.JSON200.NextCursor; f.params.Cursor == nil {
				break
			}
		}
		equal("listResponses: how many by "+f.name, len(seen), f.want)
	}
}

// exports reads all responses as NDJSON and as CSV, and continues an interrupted export.
func (d *driver) exports(ctx context.Context, campaign api.Uuid) {
	lines, err := d.ExportResponsesAsNdjsonWithResponse(ctx, campaign, nil)
	d.check(lines, err, http.StatusOK)
	equal("exportResponsesAsNdjson: Content-Type", lines.ContentType(), "application/x-ndjson")
	var uuids []string
	for line := range bytes.Lines(lines.Body) {
		var response api.Response
		if err := json.Unmarshal(line, &response); err != nil {
			fail("exportResponsesAsNdjson: %v", err)
		}
		if err := exact(response, line); err != nil {
			fail("exportResponsesAsNdjson: %v", err)
		}
		uuids = append(uuids, response.Uuid.String())
	}
	equal("exportResponsesAsNdjson: lines", len(uuids), responseCount)

	table, err := d.ExportResponsesAsCsvWithResponse(ctx, campaign, nil)
	d.check(table, err, http.StatusOK)
	equal("exportResponsesAsCsv: Content-Disposition", strings.HasPrefix(table.Headers200.ContentDisposition, "attachment"), true)
	records, err := csv.NewReader(bytes.NewReader(table.Body)).ReadAll()
	if err != nil {
		fail("exportResponsesAsCsv: %v", err)
	}
	equal("exportResponsesAsCsv: the columns", strings.Join(records[0], " "),
		"uuid reference status email firstName lastName createdAt updatedAt completedAt colour age")
	for i, record := range records[1:] {
		equal("exportResponsesAsCsv: uuid", record[0], uuids[i])
	}

	rest, err := d.ExportResponsesAsCsvWithResponse(ctx, campaign, &api.ExportResponsesAsCsvParams{
		Cursor: &uuids[1], Status: &[]string{"pending"},
	})
	d.check(rest, err, http.StatusOK)
	equal("exportResponsesAsCsv: what follows the cursor", slices.Contains(strings.Split(string(rest.Body), ","), uuids[1]), false)
	equal("exportResponsesAsCsv: the lines after the cursor", bytes.Count(rest.Body, []byte("\r\n")), responseCount-1)
}

// comments comments on a response.
func (d *driver) comments(ctx context.Context, r api.Response) {
	created, err := d.CreateCommentWithResponse(ctx, r.CampaignUuid, r.Uuid, nil, api.CommentInput{Body: "Called back."})
	d.check(created, err, http.StatusCreated)
	equalTo("createComment: author", created.JSON201.Author, "first key")
	list, err := d.ListCommentsWithResponse(ctx, r.CampaignUuid, r.Uuid, nil)
	d.check(list, err, http.StatusOK)
	equal("listComments: total", list.JSON200.Total, 1)
	equal("listComments: items/0/body", list.JSON200.Items[0].Body, "Called back.")
}

// signatures records signatures of the answers and a file of a response.
func (d *driver) signatures(ctx context.Context, r api.Response, file api.File) {
	signer := api.PersonInput{Email: "ada@example.com"}
	created, err := d.CreateSignatureWithResponse(ctx, r.CampaignUuid, r.Uuid, nil, api.SignatureInput{Signer: signer})
	d.check(created, err, http.StatusCreated)
	equal("createSignature: fileUuid", created.JSON201.FileUuid, nil)
	equal("createSignature: provider", created.JSON201.Provider, nil)
	created, err = d.CreateSignatureWithResponse(ctx, r.CampaignUuid, r.Uuid, nil, api.SignatureInput{
		Signer: signer, FileUuid: &file.Uuid, Provider: new("pen"), SignedAt: &file.CreatedAt,
	})
	d.check(created, err, http.StatusCreated)
	equal("createSignature: documentSha256", created.JSON201.DocumentSha256, file.Sha256)
	equalTo("createSignature: fileUuid", created.JSON201.FileUuid, file.Uuid)
	equal("createSignature: signedAt", created.JSON201.SignedAt.Equal(file.CreatedAt), true)
	list, err := d.ListSignaturesWithResponse(ctx, r.CampaignUuid, r.Uuid, nil)
	d.check(list, err, http.StatusOK)
	equal("listSignatures: total", list.JSON200.Total, 2)
	equalTo("listSignatures: items/0/provider", list.JSON200.Items[0].Provider, "pen")
}
