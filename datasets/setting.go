package datasets

// SettingError is an error about one setting of a data set, so that a caller can point to its line in
// the plan.
type SettingError struct {
	Key string // name of the setting, as plans write it
	Err error
}

func (e *SettingError) Error() string { return e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }
