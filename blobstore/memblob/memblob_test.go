package memblob_test

import (
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/blobtest"
	"github.com/formsvc/toolkit/blobstore/memblob"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(testing.TB) blobstore.Store { return memblob.New() }, blobtest.Options{
		Reopen: func(_ testing.TB, s blobstore.Store) blobstore.Store { return s },
	})
}
