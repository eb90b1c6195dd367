package middleware

import "fmt"

// source is what differs between the batches of different event sources.
type source[R any] struct {
	group  func(*R) string          // the group within which a record keeps its order; nil or "": none
	place  func(r *R, i int) string // where a record is in the event; nil: Records[i]
	broken map[int]error            // by the index of a record that could not be decoded
}

// placeOf returns where record i is in the event, such as Records[3].
func (s *source[R]) placeOf(r *R, i int) string {
	if s.place != nil {
		return s.place(r, i)
	}
	return fmt.Sprintf("Records[%d]", i)
}

// wholeAnswer returns the answer to a source that takes only an error: nil if
// there are records and all of them succeeded.
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

// partialAnswer returns the answer to a source that takes a list of the records
// that failed. A failed record without an identifier fails the whole batch,
// which is also what Lambda does if an identifier is empty. The list is never
// nil, so that its JSON is [] and not null.
//
// If every record failed, it returns an error as well. The source then delivers
// the same records again as for the list, and Lambda's metric Errors counts
// only an error.
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
