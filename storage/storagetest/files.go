package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func fileTests() []test {
	return []test{
		{"every field is kept", testFileMembers},
		{"times are kept to the microsecond", testFileTimes},
		{"texts are kept byte for byte", testFileTexts},
		{"invalid texts are refused", testRefusedFiles},
		{"arguments and results are copied", testFilesCopied},
		{"taken ID is refused", testFileTaken},
		{"events commit with the file", testFileEvents},
		{"decide gets a copy of the response", testFileDecideSees},
		{"error of decide leaves nothing", testFileDecideFails},
		{"files of all accounts", testAllFiles},
		{"unknown identifiers", testUnknownFiles},
		{"barred identifiers", testBarFiles},
		{"many identifiers at once", testManyFileIDs},
		{"identifier is used or barred", testFileOrBar},
	}
}

// withoutBlocks returns files as lists show them.
func withoutBlocks(files ...formsvc.File) []formsvc.File {
	listed := make([]formsvc.File, len(files))
	for i := range files {
		listed[i] = files[i]
		listed[i].Blocks = nil
	}
	return listed
}

// wantFile fails the test unless the store has exactly that file.
func (w *world) wantFile(want *formsvc.File) {
	w.Helper()
	got, err := w.store.File(w.ctx, fileKey(want))
	w.must("File", err)
	w.same("file", got, *want)
}

// testFileMembers allows empty Blocks to come back empty or nil: the contract leaves that open.
func testFileMembers(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	if files := w.files(&r); len(files) != 0 {
		w.Errorf("%d files of a new response", len(files))
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	plain, empty, large := w.newFile(&r), w.newFile(&r), w.newFile(&r)
	empty.ContentType, empty.Module, empty.Size, empty.Blocks = "", "", 0, nil
	large.Size, large.Blocks = math.MaxInt64, bytes.Repeat(every, 1000)
	copy(large.SHA256[:], every[224:])
	want := []formsvc.File{plain, empty, large}
	for i := range want {
		w.must("CreateFile", w.createFile(want[i]))
		w.wantFile(&want[i])
	}
	w.same("files", w.files(&r), withoutBlocks(want...))
	w.same("all files", w.allFiles(), want)
}

func testFileTimes(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	f := w.newFile(&r)
	f.CreatedAt = time.Date(2026, 7, 1, 1, 2, 3, 999_999_999, time.FixedZone("east", 5*3600+1800))
	w.must("CreateFile", w.createFile(f))
	f.CreatedAt = time.Date(2026, 6, 30, 19, 32, 3, 999_999_000, time.UTC)
	w.wantFile(&f)
	w.same("files", w.files(&r), withoutBlocks(f))
	w.same("all files", w.allFiles(), []formsvc.File{f})
}

func testFileTexts(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	for _, text := range append(texts(), strings.Repeat("𝕏", 10_000)) {
		f := w.newFile(&r)
		f.Name, f.ContentType, f.Module = text, text+"x", "x"+text
		w.must("CreateFile", w.createFile(f))
		w.wantFile(&f)
	}
}

func testRefusedFiles(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	create := func(set func(*formsvc.File)) error {
		f := w.newFile(&r)
		set(&f)
		return w.createFile(f, w.newEvent(&r))
	}
	w.refuses(map[string]func(string) error{
		"CreateFile: name":         func(s string) error { return create(func(f *formsvc.File) { f.Name = s }) },
		"CreateFile: content type": func(s string) error { return create(func(f *formsvc.File) { f.ContentType = s }) },
		"CreateFile: module":       func(s string) error { return create(func(f *formsvc.File) { f.Module = s }) },
		"CreateFile: event type": func(s string) error {
			e := w.newEvent(&r)
			e.Type = formsvc.EventType(s)
			return w.createFile(w.newFile(&r), w.newEvent(&r), e)
		},
	})
}

func testFilesCopied(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	r, _ := w.addResponse(&c)
	f := w.addFile(&r)
	before := w.snapshot()
	f.Blocks[0] = 'X'
	w.unchanged("the caller changed what it had passed", &before)
	got, err := w.store.File(w.ctx, fileKey(&f))
	w.must("File", err)
	got.Blocks[0] = 'X'
	w.allFiles()[0].Blocks[0] = 'X'
	w.unchanged("the caller changed what it had got", &before)

	ids := []formsvc.ID{w.nextID(), w.nextID()}
	again := []formsvc.ID{ids[0], ids[1]}
	unknown, err := w.store.UnknownFiles(w.ctx, ids)
	w.must("UnknownFiles", err)
	unknown[0] = "spoiled"
	barred, err := w.store.BarFiles(w.ctx, ids)
	w.must("BarFiles", err)
	barred[1] = "spoiled"
	w.same("what was asked for", ids, again)
}

func testFileTaken(w *world) {
	mine, others := w.addScene(), w.addScene()
	r, _ := w.addResponse(&mine.campaign)
	second, _ := w.addResponse(&mine.campaign)
	third, _ := w.addResponse(&others.campaign)
	taken := w.addFile(&r)
	before := w.snapshot()
	for _, r := range []*formsvc.Response{&r, &second, &third} {
		f, e := w.newFile(r), w.newEvent(r)
		f.ID = taken.ID
		w.wantError("CreateFile with a taken ID", w.createFile(f, e), formsvc.ErrConflict)
		w.noEvents("CreateFile with a taken ID", e)
	}
	w.unchanged("CreateFile with a taken ID", &before)
}

func testFileEvents(w *world) {
	sc := w.addScene()
	r, first := w.addResponse(&sc.campaign)
	f, events := w.newFile(&r), w.eventsOfAllTypes(&r)
	w.must("CreateFile", w.createFile(f, events...))
	w.wantFile(&f)
	w.wantHeard([]formsvc.Webhook{sc.hook}, append(events, first))
	last := &events[len(events)-1]
	if claims := w.claim(nextDay()); len(claims) != len(events)+1 {
		w.Errorf("%d claims, want %d", len(claims), len(events)+1)
	}
	got, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID, Types: []formsvc.EventType{last.Type}}, last)
	w.same("events", got, []formsvc.Event{*last})

	// If an existing event breaks the transaction, nothing of it is left; if not, all of it is stored.
	before := w.snapshot()
	again, fresh := w.newFile(&r), w.newEvent(&r)
	if err := w.createFile(again, fresh, first); err != nil {
		w.unchanged("CreateFile with an event that exists", &before)
		w.noEvents("CreateFile with an event that exists", fresh)
	} else {
		w.wantFile(&again)
	}
}

// testFileDecideSees raises no event for a file that decide returns none for.
func testFileDecideSees(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	w.must("update", incrementResponse(w, w.store, &r))
	want, err := w.store.Response(w.ctx, keyOf(&r))
	w.must("Response", err)
	before := w.snapshot()
	f := w.newFile(&r)
	w.must("CreateFile", w.store.CreateFile(w.ctx, f, func(got *formsvc.Response) (formsvc.Change, error) {
		w.same("response", *got, want)
		got.Status, got.User.LastName = "spoiled", "spoiled"
		got.Version++
		return formsvc.Change{}, nil
	}))
	before.Files = []formsvc.File{f}
	w.unchanged("CreateFile whose function changed the response", &before)
}

func testFileDecideFails(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	before := w.snapshot()
	f := w.newFile(&r)
	var event formsvc.Event
	for _, want := range []error{errors.New("refused"), formsvc.ErrStale, formsvc.ErrNotFound} {
		err := w.store.CreateFile(w.ctx, f, func(r *formsvc.Response) (formsvc.Change, error) {
			r.Status = "spoiled"
			r.Version++
			event = w.newEvent(r)
			return formsvc.Change{Events: []formsvc.Event{event}}, want
		})
		w.wantError("CreateFile", err, want)
		w.noEvents("CreateFile whose function failed", event)
	}
	w.unchanged("CreateFile whose function failed", &before)
	w.must("CreateFile with the ID of one that failed", w.createFile(f))
}

// testAllFiles adds files of two accounts and three responses in random order.
func testAllFiles(w *world) {
	if files := w.allFiles(); len(files) != 0 {
		w.Errorf("%d files of an empty store", len(files))
	}
	a, b := w.addScene(), w.addScene()
	first, _ := w.addResponse(&a.campaign)
	second, _ := w.addResponse(&a.campaign)
	third, _ := w.addResponse(&b.campaign)
	var want []formsvc.File
	for i := range 12 {
		f := w.newFile([]*formsvc.Response{&first, &second, &third}[i%3])
		f.Blocks = bytes.Repeat([]byte{byte(i)}, 4*i)
		want = append(want, f)
	}
	for i := range want { // 0, 5, 10, 3, 8, …
		w.must("CreateFile", w.createFile(want[i*5%len(want)]))
		_, err := w.store.BarFiles(w.ctx, []formsvc.ID{w.nextID()})
		w.must("BarFiles", err)
	}
	for _, limit := range []int{1, 5, 11, 12, 13, 5_000} {
		for skip := range len(want) + 1 {
			after := formsvc.ID("")
			if skip > 0 {
				after = want[skip-1].ID
			}
			got, err := allFiles(w.ctx, w.store, after, limit)
			w.must("AllFiles", err)
			end := min(skip+limit, len(want))
			w.same(fmt.Sprintf("%d files after %d", limit, skip), got, want[skip:end])
		}
	}
	for after, n := range map[formsvc.ID]int{formsvc.FloorID(start()): 12, formsvc.FloorID(nextDay()): 0} { // belongs to no file
		if got, err := allFiles(w.ctx, w.store, after, 100); err != nil || len(got) != n {
			w.Errorf("AllFiles after %s: %d files, %v; want %d", after, len(got), err, n)
		}
	}
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

func testUnknownFiles(w *world) {
	a, b := w.addScene(), w.addScene()
	mine, _ := w.addResponse(&a.campaign)
	others, _ := w.addResponse(&b.campaign)
	f, g := w.addFile(&mine), w.addFile(&others)
	low, high, barred := w.nextID(), w.nextID(), w.nextID()
	w.wantBarred("a free one", []formsvc.ID{barred}, []formsvc.ID{barred})
	w.wantUnknown("nothing", nil, nil)
	w.wantUnknown("two files", []formsvc.ID{g.ID, f.ID}, nil)
	w.wantUnknown("all kinds", []formsvc.ID{high, f.ID, barred, low, g.ID, high, mine.ID, f.ID},
		[]formsvc.ID{high, barred, low, high, mine.ID})
	upper := formsvc.ID(strings.ToUpper(string(f.ID)))
	w.wantUnknown("what is no ID", append(notIDs(), f.ID, upper), append(notIDs(), upper))
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

// testFileOrBar creates files and bars their identifiers concurrently.
func testFileOrBar(w *world) { w.wantFileOrBar([]Store{w.store}) }

// wantFileOrBar fails the test unless each identifier, wanted for a file and barred concurrently, ends as exactly one
// of the two, and the callers are told so. The stores share the same data.
func (w *world) wantFileOrBar(stores []Store) {
	w.Helper()
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	exist := 0
	const rounds = 10
	for range rounds {
		exist += w.fileOrBar(stores, &r)
	}
	if n := len(w.files(&r)); n != exist {
		w.Errorf("%d files are listed, and %d exist", n, exist)
	}
}

// fileOrBar creates a few files while two calls bar all of them, and returns how many exist afterwards.
func (w *world) fileOrBar(stores []Store, r *formsvc.Response) (exist int) {
	w.Helper()
	const n = 12
	var (
		ids     [n]formsvc.ID
		files   [n]formsvc.File
		events  [n]formsvc.Event
		created [n]error
		barred  [2]map[formsvc.ID]bool
	)
	for i := range n {
		files[i], events[i] = w.newFile(r), w.newEvent(r)
		ids[i] = files[i].ID
	}
	w.together(n+len(barred), func(i int) {
		store := stores[i%len(stores)]
		if i < n {
			created[i] = store.CreateFile(w.ctx, files[i], func(*formsvc.Response) (formsvc.Change, error) {
				return formsvc.Change{Events: events[i : i+1]}, nil
			})
			return
		}
		asked := ids
		if i > n { // in another order, to provoke deadlocks
			slices.Reverse(asked[:])
		}
		got, err := store.BarFiles(w.ctx, asked[:])
		w.check("BarFiles", err)
		barred[i-n] = set(got)
	})
	unknown, err := w.store.UnknownFiles(w.ctx, ids[:])
	w.must("UnknownFiles", err)
	free := set(unknown)
	for i, id := range ids {
		if free[id] == (created[i] == nil) || free[id] != barred[0][id] || free[id] != barred[1][id] {
			w.Errorf("CreateFile returned %v, two BarFiles told of it: %t and %t; the file exists: %t",
				created[i], barred[0][id], barred[1][id], !free[id])
		}
		if !free[id] {
			exist++
			continue
		}
		w.wantError("CreateFile of what was barred", created[i], formsvc.ErrConflict)
		w.noEvents("CreateFile of what was barred", events[i])
	}
	return exist
}

func set(ids []formsvc.ID) map[formsvc.ID]bool {
	in := make(map[formsvc.ID]bool, len(ids))
	for _, id := range ids {
		in[id] = true
	}
	return in
}
