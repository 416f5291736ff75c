package storagetest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// difference returns the first part in which two values differ, with both, or "". Nil and empty slices and maps are equal;
// times are equal only in the same location.
func difference(what string, got, want any) string {
	g, w := flatten(nil, what, reflect.ValueOf(got)), flatten(nil, what, reflect.ValueOf(want))
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g) || i >= len(w) || g[i].path != w[i].path: // maps with other keys, or values of other types
			return fmt.Sprintf("%s has other parts", what)
		case g[i].value != w[i].value:
			return fmt.Sprintf("%s is %s, want %s", g[i].path, show(g[i].value), show(w[i].value))
		}
	}
	return ""
}

// A leaf is a part of a value that has no parts.
type leaf struct{ path, value string }

func flatten(list []leaf, path string, v reflect.Value) []leaf {
	switch v.Kind() {
	case reflect.Invalid:
		return append(list, leaf{path, "nil"})
	case reflect.Interface, reflect.Pointer:
		return flatten(list, path, v.Elem())
	case reflect.Struct:
		if v.NumField() > 0 && v.Type().Field(0).IsExported() {
			for i := range v.NumField() {
				list = flatten(list, path+"."+v.Type().Field(i).Name, v.Field(i))
			}
			return list
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(list, leaf{path, string(v.Bytes())})
		}
		list = append(list, leaf{path + " (length)", fmt.Sprint(v.Len())})
		for i := range v.Len() {
			list = flatten(list, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
		return list
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		list = append(list, leaf{path + " (length)", fmt.Sprint(v.Len())})
		for _, key := range keys {
			list = append(list, leaf{path + " (key)", fmt.Sprint(key)})
			list = flatten(list, fmt.Sprintf("%s[%+q]", path, fmt.Sprint(key)), v.MapIndex(key))
		}
		return list
	}
	if t, ok := v.Interface().(time.Time); ok {
		return append(list, leaf{path, t.Format(time.RFC3339Nano) + " " + t.Location().String()})
	}
	return append(list, leaf{path, fmt.Sprint(v.Interface())})
}

// show escapes a text and truncates it if it is long.
func show(s string) string {
	const most = 200
	if len(s) > most {
		return fmt.Sprintf("%+q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%+q", s)
}

// spoil overwrites everything that a value shares with its copies: a store must not share it with its caller.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			switch e := v.Index(i); e.Kind() {
			case reflect.Uint8:
				e.SetUint('X')
			case reflect.String:
				e.SetString("spoiled")
			default:
				spoil(e)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			spoil(v.MapIndex(key))
			if e := v.MapIndex(key); e.Kind() == reflect.String {
				v.SetMapIndex(key, reflect.Zero(e.Type()))
			}
		}
	}
}
