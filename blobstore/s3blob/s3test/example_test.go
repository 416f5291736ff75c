package s3test_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
)

// testUpload is a test with its own server, which is removed at the end. In your test file, name it
// TestUpload.
func testUpload(t *testing.T) {
	server := s3test.Start(t)
	bucket, err := s3blob.ParseURL(server.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := s3blob.New(bucket, s3blob.StaticCredentials(server.AccessKey, server.SecretKey, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "c4/plan.txt", strings.NewReader("a flat roof")); err != nil {
		t.Fatal(err)
	}
	// The server keeps the object as a plain file.
	text, err := os.ReadFile(filepath.Join(server.Dir, "c4", "plan.txt"))
	if err != nil || string(text) != "a flat roof" {
		t.Errorf("the bucket has %q, %v", text, err)
	}
}

func ExampleStart() {
	var t *testing.T // of go test
	testUpload(t)
}
