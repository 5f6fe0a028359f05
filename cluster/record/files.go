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
	// Size is that of the content in bytes, and SHA256 its checksum in hexadecimal: of a file that
	// is compressed with gzip, of what it becomes.
	Size   int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// SortFiles orders files by their names, and drops those that are listed twice.
func SortFiles(files []DataFile) []DataFile {
	slices.SortFunc(files, func(a, b DataFile) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.SHA256,
			b.SHA256))
	})
	return slices.Compact(files)
}

// OtherData says, a sentence for each file, where the data of two records differ: those of now from
// those of before. Nothing is said of files that only one of them has, such as records have that
// were made before checksums were.
func OtherData(before, now []DataFile) []string {
	var said []string
	for _, was := range before {
		same := slices.ContainsFunc(now, func(is DataFile) bool { return is == was })
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
