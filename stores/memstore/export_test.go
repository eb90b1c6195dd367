package memstore

// MakeNewer makes the row of a name look as if a later version had written it.
func (s *Store) MakeNewer(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row(name).Newer = true
}

// Save returns a function that brings the row of a name back to what it is now.
func (s *Store) Save(name string) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := *s.row(name)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*s.row(name) = saved
	}
}

// Len is the number of rows.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}
