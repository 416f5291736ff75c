package storage_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/storagetest"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// wrapped is a store with a function around each method.
type wrapped struct {
	formsvc.Store
	delivery.Queue

	inner *memory.Store
}

func (w wrapped) Close() error { return w.inner.Close() }

func wrap(around storage.Func) wrapped {
	inner := memory.New()
	return wrapped{storage.Around(inner, around), storage.AroundQueue(inner, around), inner}
}

// A store behind a Func that only calls next behaves like the store itself.
func TestAroundConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t testing.TB) storagetest.Store {
		w := wrap(func(ctx context.Context, _ string, next func(context.Context) (int, error)) error {
			_, err := next(ctx)
			return err
		})
		t.Cleanup(func() { _ = w.Close() })
		return w
	}, storagetest.Options{
		Except: map[storagetest.Category]string{storagetest.Durability: "it keeps everything in memory"},
		Reopen: func(_ testing.TB, s storagetest.Store) storagetest.Store { return s },
	})
}

// Every method with a context calls the function with its own name and returns the
// function's error.
func TestAroundEveryMethod(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	var called []string
	w := reflect.ValueOf(wrap(func(_ context.Context, method string, _ func(context.Context) (int, error)) error {
		called = append(called, method)
		return stop
	}))
	var want []string
	for _, contract := range []reflect.Type{reflect.TypeFor[formsvc.Store](), reflect.TypeFor[delivery.Queue]()} {
		for method := range contract.Methods() {
			if method.Name == "Notify" { // can't fail
				continue
			}
			want = append(want, method.Name)
			args := []reflect.Value{reflect.ValueOf(t.Context())}
			for i := 1; i < method.Type.NumIn(); i++ {
				args = append(args, reflect.Zero(method.Type.In(i)))
			}
			out := w.MethodByName(method.Name).Call(args)
			if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, stop) {
				t.Errorf("%s returns %v", method.Name, err)
			}
		}
	}
	if !slices.Equal(called, want) {
		t.Errorf("called %v\nwant %v", called, want)
	}
}

// Print each call to a store and its error.
func ExampleAround() {
	store := storage.Around(memory.New(), func(ctx context.Context, method string, next func(context.Context) (int, error)) error {
		_, err := next(ctx)
		fmt.Println(method, err)
		return err
	})
	svc, err := formsvc.New(store, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = svc.Accounts.Create(context.Background(), "Town hall")
	_, _ = svc.Accounts.List(context.Background())
	_, _ = svc.Accounts.ByName(context.Background(), "nobody")
	// Output:
	// CreateAccount <nil>
	// Accounts <nil>
	// AccountByName not found
}
