// Package refusal marks errors with what the caller can do about them: give other input, or try
// again later.
package refusal

// InputError is about what the user gave: a plan, data, a folder. It is
// told before anything runs.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *InputError) Unwrap() error { return e.Err }

// Input marks an error as an InputError.
func Input(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{err}
}

// AgainError says that the same request may succeed later: a process is joining the cluster,
// stopping or crowded, or the process that keeps a submission is away.
type AgainError struct{ Err error }

func (e *AgainError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *AgainError) Unwrap() error { return e.Err }

// Again marks an error as an AgainError.
func Again(err error) error { return &AgainError{err} }
