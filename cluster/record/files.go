package record

import (
	"cmp"
	"fmt"
	"slices"
)

// DataFile is a file of samples that the runs of a record were trained or judged on.
type DataFile struct {
	// Name is the file's, without its folder.
	Name string `json:"name"`
	// Size is the length of the content in bytes, SHA256 its checksum in hexadecimal: of a file
	// that is compressed with gzip, of what it becomes.
	Size   int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Missing says what became of the values that the samples lack; empty where they would have
	// been refused.
	Missing Missing `json:"missing,omitzero"`
	// Notes say, in sentences, what of the content was passed over or read otherwise than it stands
	// there.
	Notes []string `json:"notes,omitempty"`
}

// Missing counts values that samples lack.
type Missing struct {
	// Values are those that were found, Samples the ones that they were found in.
	Values  int `json:"values"`
	Samples int `json:"samples"`
	// Done is what was done about them: "drop", "mean" or "constant".
	Done string `json:"done"`
}

// same reports whether two files have the same content.
func (f DataFile) same(other DataFile) bool {
	return f.Name == other.Name && f.Size == other.Size && f.SHA256 == other.SHA256
}

// SortFiles orders files by their names, and keeps of those that are listed twice the one with the
// most notes.
func SortFiles(files []DataFile) []DataFile {
	slices.SortFunc(files, func(a, b DataFile) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.SHA256, b.SHA256),
			cmp.Compare(len(b.Notes), len(a.Notes)))
	})
	return slices.CompactFunc(files, DataFile.same)
}

// OtherData says, in a sentence for each file, where the data of a record differ from the data of
// an earlier one. It says nothing of files that only one record has: the oldest records have no
// checksums.
func OtherData(before, now []DataFile) []string {
	var said []string
	for _, was := range before {
		same := slices.ContainsFunc(now, was.same)
		at := slices.IndexFunc(now, func(is DataFile) bool { return is.Name == was.Name })
		if same || at < 0 {
			continue
		}
		is := now[at]
		said = append(said, fmt.Sprintf("the data differ: %s had %d bytes with SHA-256 %s, and has %d with %s",
			was.Name, was.Size, was.SHA256, is.Size, is.SHA256))
	}
	return said
}
