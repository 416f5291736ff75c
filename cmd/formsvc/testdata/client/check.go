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

// equalTo is equal for a value that may be absent.
func equalTo[T comparable](what string, got *T, want T) { equal(what, given(what, got), want) }

// given returns an optional value, and fails if it is absent.
func given[T any](what string, value *T) T {
	if value == nil {
		fail("%s is absent or null", what)
	}
	return *value
}

// goName normalizes an operationId and the generated names, so that they compare equal.
func goName(operationID string) string { return strings.ToLower(operationID) }

// check fails unless a call returned the status, and the generated types have the whole response: its JSON body and its
// headers. After it, fields like JSON200 and Headers200 can be used.
func (d *driver) check(answer any, err error, status int) {
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
	if status < 300 {
		d.used[goName(operation)] = true
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

// plainHeaders returns the headers of HTTP itself, not of the API.
func plainHeaders() []string {
	return []string{
		"Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "Transfer-Encoding", "Vary", "X-Content-Type-Options",
	}
}

// checkHeaders checks the typed headers of a response.
func checkHeaders(v reflect.Value, status int, header http.Header) error {
	field := v.FieldByName("Headers" + strconv.Itoa(status))
	if !field.IsValid() || field.IsNil() {
		return errors.New("the document does not know this status")
	}
	typed := field.Elem()
	sent := map[string]bool{}
	for name := range header {
		flat := strings.ToLower(strings.ReplaceAll(name, "-", ""))
		sent[flat] = true
		known := typed.FieldByNameFunc(func(field string) bool { return strings.ToLower(field) == flat })
		if !known.IsValid() && !slices.Contains(plainHeaders(), name) {
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
	if err := valid("", reflect.ValueOf(typed)); err != nil {
		return err
	}
	again, err := json.Marshal(typed)
	if err != nil {
		return err
	}
	var a, b any
	if err := errors.Join(decode(text, &a), decode(again, &b)); err != nil {
		return err
	}
	return same("", a, b)
}

// decode reads JSON without rounding its numbers.
func decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// same compares two decoded JSON texts: the service's, and the one encoded from the type. They may format the same time
// differently.
func same(path string, served, typed any) error {
	switch served := served.(type) {
	case map[string]any:
		if typed, ok := typed.(map[string]any); ok {
			return sameObject(path, served, typed)
		}
	case []any:
		if typed, ok := typed.([]any); ok && len(typed) == len(served) {
			for i := range served {
				if err := same(path+"/"+strconv.Itoa(i), served[i], typed[i]); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		if served == typed || sameTime(served, typed) {
			return nil
		}
	}
	return fmt.Errorf("%s is %v in the answer, and %v after it went through the generated type", path, served, typed)
}

// sameObject is same for objects.
func sameObject(path string, served, typed map[string]any) error {
	for name, v := range served {
		w, ok := typed[name]
		if !ok && v == nil {
			continue // the type leaves out a field that is optional and null
		}
		if !ok {
			return fmt.Errorf("%s/%s is in the answer and not in the document", path, name)
		}
		if err := same(path+"/"+name, v, w); err != nil {
			return err
		}
	}
	for name := range typed {
		if _, ok := served[name]; !ok {
			return fmt.Errorf("%s/%s is always there by the document, and not in the answer", path, name)
		}
	}
	return nil
}

// sameTime reports whether both are strings with the same time.
func sameTime(a, b any) bool {
	s, _ := a.(string)
	t, _ := b.(string)
	x, err := time.Parse(time.RFC3339Nano, s)
	y, err2 := time.Parse(time.RFC3339Nano, t)
	return err == nil && err2 == nil && x.Equal(y)
}

// valid looks for enum values that the document doesn't have, and for events whose type doesn't match their content.
func valid(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return valid(path, v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if err := valid(path+"/"+strconv.Itoa(i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for name, value := range v.Seq2() {
			if err := valid(path+"/"+name.String(), value); err != nil {
				return err
			}
		}
	case reflect.Struct:
		if event, ok := v.Interface().(api.Event); ok {
			_, err := opened(event)
			return err
		}
		for field, value := range v.Fields() {
			if field.IsExported() {
				if err := valid(path+"/"+field.Name, value); err != nil {
					return err
				}
			}
		}
	default:
		if enum, ok := v.Interface().(interface{ Valid() bool }); ok && !enum.Valid() {
			return fmt.Errorf("%s is %v, which the document does not know", path, v)
		}
	}
	return nil
}
