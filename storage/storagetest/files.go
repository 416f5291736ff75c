package storagetest

import (
	"github.com/formsvc/toolkit/formsvc"
)

// withoutBlocks returns files as lists show them.
func withoutBlocks(files ...formsvc.File) []formsvc.File {
	listed := make([]formsvc.File, len(files))
	for i := range files {
		listed[i] = files[i]
		listed[i].Blocks = nil
	}
	return listed
}

// wantUnknown fails the test unless UnknownFiles returns these.
func (w *world) wantUnknown(what string, ids, want []formsvc.ID) {
	w.Helper()
	got, err := w.store.UnknownFiles(w.ctx, ids)
	w.must("UnknownFiles", err)
	w.same("of "+what+", unknown are", got, want)
}

// wantBarred fails the test unless BarFiles returns these.
func (w *world) wantBarred(what string, ids, want []formsvc.ID) {
	w.Helper()
	got, err := w.store.BarFiles(w.ctx, ids)
	w.must("BarFiles", err)
	w.same("of "+what+", barred are", got, want)
}

// notIDs returns texts that are no identifiers, so they are always unknown and barred.
func notIDs() []formsvc.ID {
	return []formsvc.ID{"", "nope", "\x00", "\xff", "'", "{00000000-0000-7000-8000-000000000000}", "00000000000070008000000000000000"}
}

func testBarFiles(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	taken := w.addFile(&r)
	f, g := w.newFile(&r), w.newFile(&r)
	before := w.snapshot()
	w.wantBarred("nothing", nil, nil)
	w.wantBarred("a file", []formsvc.ID{taken.ID}, nil)
	w.wantBarred("a file and others", []formsvc.ID{g.ID, taken.ID, f.ID, g.ID}, []formsvc.ID{g.ID, f.ID, g.ID})
	w.wantBarred("barred ones and others", []formsvc.ID{taken.ID, f.ID, g.ID, "nope"}, []formsvc.ID{f.ID, g.ID, "nope"})
	w.wantBarred("what is no ID", notIDs(), notIDs())
	w.unchanged("BarFiles", &before)
	for _, f := range []*formsvc.File{&f, &g} {
		e := w.newEvent(&r)
		w.wantError("CreateFile with a barred ID", w.createFile(*f, e), formsvc.ErrConflict)
		w.noEvents("CreateFile with a barred ID", e)
		_, err := w.store.File(w.ctx, fileKey(f))
		w.wantError("File of a barred ID", err, formsvc.ErrNotFound)
		for _, account := range []formsvc.ID{"", w.nextID()} {
			_, err = w.store.File(w.ctx, formsvc.FileKey{AccountID: account, ID: f.ID})
			w.wantError("File of a barred ID and no account", err, formsvc.ErrNotFound)
		}
	}
	w.unchanged("CreateFile with a barred ID", &before)
	w.same("files", w.files(&r), withoutBlocks(taken))
	w.addFile(&r)
}

// testManyFileIDs passes more identifiers than fit one statement of some databases.
func testManyFileIDs(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	const n = 35_000
	ids := make([]formsvc.ID, n)
	for i := range ids {
		ids[n-1-i] = w.nextID()
	}
	var free []formsvc.ID
	for i, id := range ids {
		if i%3_000 != 17 {
			free = append(free, id)
			continue
		}
		f := w.newFile(&r)
		f.ID = id
		w.must("CreateFile", w.createFile(f))
	}
	w.wantUnknown("many", ids, free)
	w.wantBarred("many", ids[:n/10], free[:n/10-2])
	w.wantBarred("many, again", ids[:n/10], free[:n/10-2])
	w.wantUnknown("many, a part of them barred", ids, free)
}

func set(ids []formsvc.ID) map[formsvc.ID]bool {
	in := make(map[formsvc.ID]bool, len(ids))
	for _, id := range ids {
		in[id] = true
	}
	return in
}
