package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"example.com/client/api"
)

// files uploads files in both ways and downloads them. It returns one of them.
func (d *driver) files(ctx context.Context, r api.Response) api.File {
	picture := []byte("\x89PNG\r\n\x1a\nnot quite a picture\x00\xff")
	form, contentType := formOf(picture, map[string]string{"module": "colour"})
	uploaded, err := d.UploadFileWithBodyWithResponse(ctx, r.CampaignUuid, r.Uuid, nil, contentType, bytes.NewReader(form))
	d.check(uploaded, err, http.StatusCreated)
	file := *uploaded.JSON201
	sum := sha256.Sum256(picture)
	equal("uploadFile: name", file.Name, "Übersicht.png")
	equal("uploadFile: contentType", file.ContentType, "image/png")
	equalTo("uploadFile: module", file.Module, "colour")
	equal("uploadFile: size", file.Size, int64(len(picture)))
	equal("uploadFile: sha256", file.Sha256, hex.EncodeToString(sum[:]))
	equal("uploadFile: responseUuid", file.ResponseUuid, r.Uuid)
	d.download(ctx, file, picture)
	raw := d.uploadBytes(ctx, r)

	list, err := d.ListFilesWithResponse(ctx, r.CampaignUuid, r.Uuid, nil)
	d.check(list, err, http.StatusOK)
	equal("listFiles: total", list.JSON200.Total, 2)
	equal("listFiles: items/0/uuid", list.JSON200.Items[0].Uuid, raw.Uuid)

	form, contentType = formOf(picture, map[string]string{"colour": "red"})
	refused, err := d.UploadFileWithBodyWithResponse(ctx, r.CampaignUuid, r.Uuid, nil, contentType, bytes.NewReader(form))
	d.check(refused, err, http.StatusBadRequest)
	equal("uploadFile: code", refused.ApplicationproblemJSON400.Code, api.BadUploadProblemCodeUnknownPart)
	large := bytes.NewReader(make([]byte, 100_001))
	named := &api.UploadFileParams{ContentDisposition: new(`attachment; filename="zeros"`)}
	refused, err = d.UploadFileWithBodyWithResponse(ctx, r.CampaignUuid, r.Uuid, named, "application/octet-stream", large)
	d.check(refused, err, http.StatusRequestEntityTooLarge)
	equal("uploadFile: code", refused.ApplicationproblemJSON413.Code, api.FileTooLargeProblemCodeFileTooLarge)
	return file
}

// formOf returns a form with a file and other fields, and its media type.
func formOf(content []byte, fields map[string]string) ([]byte, string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreatePart(textproto.MIMEHeader{ // writing to b can't fail
		"Content-Disposition": {`form-data; name="file"; filename="Übersicht.png"`},
		"Content-Type":        {"image/png"},
	})
	_, _ = part.Write(content)
	for name, value := range fields {
		_ = w.WriteField(name, value)
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// uploadBytes uploads a file as the body of the request, twice with the same
// Idempotency-Key.
func (d *driver) uploadBytes(ctx context.Context, r api.Response) api.File {
	const content = "one, two\n"
	sum := sha256.Sum256([]byte(content))
	params := &api.UploadFileParams{
		ContentDisposition: new(`attachment; filename="list.csv"`),
		ContentDigest:      new("sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"),
		Module:             new("age"),
		IdempotencyKey:     new("list-1"),
	}
	uploaded, err := d.UploadFileWithBodyWithResponse(ctx, r.CampaignUuid, r.Uuid, params, "text/csv", strings.NewReader(content))
	d.check(uploaded, err, http.StatusCreated)
	file := *uploaded.JSON201
	equal("uploadFile: name", file.Name, "list.csv")
	equal("uploadFile: contentType", file.ContentType, "text/csv")
	equalTo("uploadFile: module", file.Module, "age")
	equal("uploadFile: sha256", file.Sha256, hex.EncodeToString(sum[:]))

	again, err := d.UploadFileWithBodyWithResponse(ctx, r.CampaignUuid, r.Uuid, params, "text/csv", strings.NewReader(content))
	d.check(again, err, http.StatusCreated)
	equalTo("uploadFile: Idempotent-Replayed", again.Headers201.IdempotentReplayed, "true")
	equal("uploadFile: uuid", again.JSON201.Uuid, file.Uuid)
	params.IdempotencyKey, params.ContentDigest = nil, new("sha-256=:"+base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))+":")
	wrong, err := d.UploadFileWithBodyWithResponse(ctx, r.CampaignUuid, r.Uuid, params, "text/csv", strings.NewReader(content))
	d.check(wrong, err, http.StatusBadRequest)
	equal("uploadFile: code", wrong.ApplicationproblemJSON400.Code, api.BadUploadProblemCodeDigestMismatch)
	return file
}

// download downloads a file in every way.
func (d *driver) download(ctx context.Context, file api.File, content []byte) {
	whole, err := d.DownloadFileWithResponse(ctx, file.Uuid, nil)
	d.check(whole, err, http.StatusOK)
	equal("downloadFile: the bytes", string(whole.Body), string(content))
	equal("downloadFile: Content-Type", whole.ContentType(), "image/png")
	etag, modified := whole.Headers200.ETag, whole.Headers200.LastModified
	equal("downloadFile: ETag", etag, `"`+file.Sha256+`"`)

	part, err := d.DownloadFileWithResponse(ctx, file.Uuid, &api.DownloadFileParams{Range: new("bytes=1-3"), IfRange: &etag})
	d.check(part, err, http.StatusPartialContent)
	equal("downloadFile: the bytes of the range", string(part.Body), "PNG")
	equalTo("downloadFile: Content-Range", part.Headers206.ContentRange, fmt.Sprintf("bytes 1-3/%d", len(content)))
	for _, params := range []*api.DownloadFileParams{{IfNoneMatch: &etag}, {IfModifiedSince: &modified}} {
		unchanged, err := d.DownloadFileWithResponse(ctx, file.Uuid, params)
		d.check(unchanged, err, http.StatusNotModified)
	}
	other, err := d.DownloadFileWithResponse(ctx, file.Uuid, &api.DownloadFileParams{IfMatch: new(`"other"`)})
	d.check(other, err, http.StatusPreconditionFailed)
	same, err := d.DownloadFileWithResponse(ctx, file.Uuid, &api.DownloadFileParams{IfUnmodifiedSince: &modified})
	d.check(same, err, http.StatusOK)
	beyond, err := d.DownloadFileWithResponse(ctx, file.Uuid, &api.DownloadFileParams{Range: new("bytes=1000-")})
	d.check(beyond, err, http.StatusRequestedRangeNotSatisfiable)
	equal("downloadFile: code", beyond.ApplicationproblemJSON416.Code, api.RangeNotSatisfiableProblemCodeRangeNotSatisfiable)
}
