package formsvc

import "testing"

// The sum of the sizes stays within the limit, also when values are replaced and dropped.
func TestBoundedMapCountsSizes(t *testing.T) {
	m := newBoundedMap[int](100, func(v []byte) int { return len(v) })
	for i, size := range []int{40, 40, 20, 90, 10, 5, 50, 50, 1, 100, 0, 7} {
		m.put(i%4, make([]byte, size))
		if i%3 == 0 {
			m.drop((i + 1) % 4)
		}
		sum := 0
		for _, v := range m.m {
			sum += len(v)
		}
		if sum != m.used || sum > 100 {
			t.Fatalf("after %d values: %d bytes, counted %d of 100", i+1, sum, m.used)
		}
		if v, ok := m.get(i % 4); !ok || len(v) != size {
			t.Errorf("value %d: %d bytes, %v", i, len(v), ok)
		}
	}
	m.clear()
	if m.used != 0 {
		t.Errorf("%d bytes after clear", m.used)
	}
	few := newBoundedMap[int](2, one[string])
	for i := range 3 {
		few.put(i, "x")
		few.put(i, "y")
	}
	if _, old := few.get(1); old || len(few.m) != 1 {
		t.Errorf("%v", few.m)
	}
}
