package httpx_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkRequest checks that a successful request is documented.
func (x *passage) checkRequest() {
	o := x.operation
	if !o.public && !x.c.open && x.r.Header.Get("Authorization") == "" {
		x.errorf("answered without a key")
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		x.errorf("the query was taken: %v", err)
	}
	dropEmpty(query)
	for name := range query {
		if o.parameter("query", name) == nil {
			x.errorf("the parameter %q was taken, but is not documented", name)
		}
	}
	for _, p := range o.parameters {
		values := query[p.name]
		switch p.in {
		case "path":
			continue // otherwise it would be another operation
		case "header":
			if values = x.r.Header.Values(p.name); len(values) > 0 {
				values = []string{strings.Join(values, ", ")}
			}
		}
		switch {
		case len(values) == 0:
			if p.required {
				x.errorf("taken without the parameter %s", p.name)
			}
			continue
		case len(values) > 1 && p.kind != "array":
			x.errorf("the parameter %s was taken %d times", p.name, len(values))
		}
		if err := p.fits(values...); err != nil {
			x.errorf("the parameter %s was taken: %q: %v", p.name, values, err)
		}
	}
	x.checkSent()
}

// dropEmpty removes empty values from a query: they mean absent.
func dropEmpty(query url.Values) {
	for name, values := range query {
		if query[name] = slices.DeleteFunc(values, func(v string) bool { return v == "" }); len(query[name]) == 0 {
			delete(query, name)
		}
	}
}

// checkSent checks the body of a request.
func (x *passage) checkSent() {
	body, whole := x.sent.whole()
	if len(x.operation.body) == 0 {
		if len(body) > 0 || !whole {
			x.errorf("a body was read, but none is documented")
		}
		return
	}
	if len(body) == 0 && whole && !x.operation.bodyRequired {
		return
	}
	mediaType, parameters, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	schema, ok := byMediaType(x.operation.body, mediaType)
	if !ok {
		x.errorf("the media type %q was taken, but is not documented", mediaType)
		return
	}
	switch {
	case !whole:
	case mediaType == "application/json" && x.operation.body[mediaType] != nil:
		x.fits(schema, body, "the body was taken")
	case mediaType == "multipart/form-data":
		x.checkForm(schema, body, parameters["boundary"])
	}
}

// checkForm checks the parts of a form.
func (x *passage) checkForm(schema *jsonschema.Schema, body []byte, boundary string) {
	parts := map[string]any{}
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextPart()
		if err != nil {
			break // the handler checks the form itself
		}
		parts[part.FormName()] = "content"
	}
	if err := fit(schema, parts); err != nil {
		x.errorf("the form was taken: %v", err)
	}
}

// fits checks a value in text form.
func (d *documented) fits(values ...string) error {
	if d.kind != "array" {
		return fit(d.schema, typed(d.kind, values[0]))
	}
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = typed(d.element, value)
	}
	return fit(d.schema, list)
}

func typed(kind, text string) any {
	switch kind {
	case "integer":
		if n, ok := new(big.Int).SetString(text, 10); ok { // in a query an integer has several forms
			return json.Number(n.String())
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}
