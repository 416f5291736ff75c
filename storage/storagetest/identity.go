package storagetest

import (
	"github.com/formsvc/toolkit/formsvc"
)

// identity returns the identity of a store, which must be an ID.
func (w *world) identity(s formsvc.Store) formsvc.ID {
	w.Helper()
	id, err := s.Identity(w.ctx)
	w.must("Identity", err)
	if _, ok := formsvc.ParseID(string(id)); !ok {
		w.Fatalf("the identity is %q, want an ID", id)
	}
	return id
}

func testIdentityStays(w *world) {
	id := w.identity(w.store)
	w.addScene()
	w.same("identity after writing", w.identity(w.store), id)
}

func testIdentityIsOwn(w *world) {
	if id := w.identity(w.store); id == w.identity(w.open(w.T)) {
		w.Errorf("two empty stores have the identity %s", id)
	}
}

func testHandlesIdentity(w *world) {
	w.same("identity of a second store over the same data", w.identity(w.reopen(w.T, w.store)), w.identity(w.store))
}
