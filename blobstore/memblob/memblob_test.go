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
		Except: map[blobtest.Category]string{
			blobtest.Cleaning: "a Put that is cut off leaves nothing behind",
		},
		Reopen: func(_ testing.TB, s blobstore.Store) blobstore.Store { return s },
	})
}
