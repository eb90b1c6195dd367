package middleware

import "fmt"

// source is what the batches of one event source have of their own.
type source[R any] struct {
	group  func(*R) string          // within which records keep their order; nil or "": none
	strict bool                     // OrderByName does not apply
	place  func(r *R, i int) string // of a record in the event; nil: Records[i]
	broken map[int]error            // records that could not be decoded
}

func (s *source[R]) placeOf(r *R, i int) string {
	if s.place != nil {
		return s.place(r, i)
	}
	return fmt.Sprintf("Records[%d]", i)
}

// wholeAnswer returns what to answer a source that takes an error or nothing.
func (s *source[R]) wholeAnswer(errs []error, records []R) error {
	e := &BatchError{Records: len(records)}
	for i, err := range errs {
		if err != nil {
			e.Failed = append(e.Failed, &RecordError{Record: s.placeOf(&records[i], i), Err: err})
		}
	}
	if e.Records > 0 && len(e.Failed) == 0 {
		return nil
	}
	return e
}

// partialAnswer returns what to answer a source that is told which records failed.
// The list is never nil, because Lambda reads both null and an empty list as
// success. A failed record without an identifier fails the whole batch, which is
// what Lambda makes of an empty identifier anyway.
//
// A batch in which nothing succeeded is an error as well. The source delivers the
// same records again as for a list that names all of them, and Lambda's metric
// Errors counts only an error.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
// https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html
func partialAnswer[R, F any](s *source[R], errs []error, records []R, identify func(*R) (F, bool)) ([]F, error) {
	failed := []F{}
	for i, err := range errs {
		if err == nil {
			continue
		}
		f, ok := identify(&records[i])
		if !ok {
			return []F{}, s.wholeAnswer(errs, records)
		}
		failed = append(failed, f)
	}
	if len(failed) == len(records) { // also of an event without records
		return failed, s.wholeAnswer(errs, records)
	}
	return failed, nil
}
