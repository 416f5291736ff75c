package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/client/api"
)

// fail prints an error and ends the program.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// equal fails unless got equals want.
func equal[T comparable](what string, got, want T) {
	if got != want {
		fail("%s: got %v, want %v", what, got, want)
	}
}

// check fails unless a call returned the status, and the generated types have the whole response: its JSON body and its
// headers. After it, fields like JSON200 and Headers200 can be used.
func check(answer any, err error, status int) {
	v := reflect.ValueOf(answer)
	operation := strings.TrimSuffix(v.Type().Elem().Name(), "Response")
	if err != nil {
		fail("%s: %v", operation, err)
	}
	v = v.Elem()
	body := v.FieldByName("Body").Bytes()
	resp := v.FieldByName("HTTPResponse").Interface().(*http.Response)
	if resp.StatusCode != status {
		fail("%s: status %d, want %d\n%s", operation, resp.StatusCode, status, body)
	}
	if err := errors.Join(checkBody(v, status, resp, body), checkHeaders(v, status, resp.Header)); err != nil {
		fail("%s: status %d: %v\n%s", operation, status, err, body)
	}
}

// checkBody checks the typed body of a response.
func checkBody(v reflect.Value, status int, resp *http.Response, body []byte) error {
	typed := v.FieldByName("JSON" + strconv.Itoa(status))
	if status >= 400 {
		typed = v.FieldByName("ApplicationproblemJSON" + strconv.Itoa(status))
	}
	mediaType := resp.Header.Get("Content-Type")
	switch {
	case typed.IsValid() && typed.IsNil():
		return fmt.Errorf("the document promises JSON, and it is %q", mediaType)
	case typed.IsValid():
		return exact(typed.Interface(), body)
	case mediaType == "application/json" || mediaType == "application/problem+json":
		return errors.New("it is JSON, and the document knows of none")
	default:
		return nil
	}
}

// plainHeaders are the headers of HTTP itself, not of the API.
var plainHeaders = []string{
	"Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "Transfer-Encoding", "Vary", "X-Content-Type-Options",
}

// checkHeaders checks the typed headers of a response.
func checkHeaders(v reflect.Value, status int, header http.Header) error {
	field := v.FieldByName("Headers" + strconv.Itoa(status))
	if !field.IsValid() || field.IsNil() {
		return errors.New("the document does not know this status")
	}
	typed, sent := field.Elem(), map[string]bool{}
	for name := range header {
		flat := strings.ToLower(strings.ReplaceAll(name, "-", ""))
		sent[flat] = true
		known := typed.FieldByNameFunc(func(field string) bool { return strings.ToLower(field) == flat })
		if !known.IsValid() && !slices.Contains(plainHeaders, name) {
			return fmt.Errorf("the document does not know the header %s", name)
		}
	}
	for field, value := range typed.Fields() {
		if value.Kind() != reflect.Pointer && !sent[strings.ToLower(field.Name)] {
			return fmt.Errorf("the header %s is always there by the document, and not in the answer", field.Name)
		}
	}
	return nil
}

// exact compares a decoded generated type with its JSON text, and its enums with the values in the document. It detects
// fields that only the text or only the type has.
func exact(typed any, text []byte) error {
	if err := valid(reflect.ValueOf(typed)); err != nil {
		return err
	}
	again, err := json.Marshal(typed)
	if err != nil {
		return err
	}
	if a, b := plain(text), plain(again); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("after it went through the generated type, the answer is %v; it was %v", b, a)
	}
	return nil
}

// plain decodes JSON without absent and null members, and with times that compare equal.
func plain(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // unrounded
	if err := d.Decode(&v); err != nil {
		fail("%v: %s", err, text)
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if v[name] = walk(member); member == nil {
					delete(v, name)
				}
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case string:
			if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
				return t.UnixNano()
			}
		}
		return v
	}
	return walk(v)
}

// valid looks for enum values that the document doesn't have, and for events whose type doesn't match their content.
func valid(v reflect.Value) (err error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return valid(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			err = errors.Join(err, valid(v.Index(i)))
		}
	case reflect.Map:
		for _, value := range v.Seq2() {
			err = errors.Join(err, valid(value))
		}
	case reflect.Struct:
		if event, ok := v.Interface().(api.Event); ok {
			_, err := opened(event)
			return err
		}
		for field, value := range v.Fields() {
			if field.IsExported() {
				err = errors.Join(err, valid(value))
			}
		}
	default:
		if enum, ok := v.Interface().(interface{ Valid() bool }); ok && !enum.Valid() {
			return fmt.Errorf("the document does not know the value %v of %s", v, v.Type())
		}
	}
	return err
}

// opened returns the event of the union by its discriminator, and checks that they match.
func opened(event api.Event) (any, error) {
	value, err := event.ValueByDiscriminator()
	if err != nil {
		return nil, err
	}
	text, err := event.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return value, exact(value, text)
}
