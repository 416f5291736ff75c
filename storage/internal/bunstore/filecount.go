package bunstore

import "context"

// CountFiles implements storage.Database.
func (s *Store) CountFiles(ctx context.Context) (files int, bytes int64, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, 0, err
	}
	err = s.read.QueryRowContext(ctx,
		"SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM formsvc_files WHERE account_id IS NOT NULL").Scan(&files, &bytes)
	if err != nil {
		return 0, 0, s.backend.Classify(err)
	}
	return files, bytes, nil
}
