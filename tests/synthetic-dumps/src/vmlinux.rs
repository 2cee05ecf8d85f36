//! Writes small vmlinux files with the symbols, sections and types of a test.

use std::io;
use std::path::Path;

/// BTF types, added one by one; each gets the next number.
#[derive(Debug, Default, Clone)]
pub struct Btf {
    types: Vec<u32>,
    strings: Vec<u8>,
    count: u32,
}

impl Btf {
    fn add(&mut self, name: &str, words: &[u32]) -> u32 {
        let name = self.name(name);
        self.types.push(name);
        self.types.extend(words);
        self.count += 1;
        self.count
    }

    fn name(&mut self, name: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        if name.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
        at
    }

    pub fn int(&mut self, name: &str, size: u32) -> u32 {
        self.add(name, &[1 << 24, size, size * 8])
    }

    pub fn pointer(&mut self, target: u32) -> u32 {
        self.add("", &[2 << 24, target])
    }

    pub fn array(&mut self, element: u32, count: u32) -> u32 {
        self.add("", &[3 << 24, 0, element, 1, count])
    }

    pub fn typedef(&mut self, name: &str, of: u32) -> u32 {
        self.add(name, &[8 << 24, of])
    }

    pub fn variable(&mut self, name: &str, of: u32) -> u32 {
        self.add(name, &[14 << 24, of, 1])
    }

    /// Adds a structure; members have a name, a type and an offset in bytes.
    pub fn record(&mut self, name: &str, size: u32, members: &[(&str, u32, u32)]) -> u32 {
        let mut words = vec![4 << 24 | members.len() as u32, size];
        for (name, kind, at) in members {
            words.extend([self.name(name), *kind, at * 8]);
        }
        self.add(name, &words)
    }

    pub fn enumeration(&mut self, name: &str, values: &[(&str, u32)]) -> u32 {
        let mut words = vec![6 << 24 | values.len() as u32, 4];
        for (name, value) in values {
            words.extend([self.name(name), *value]);
        }
        self.add(name, &words)
    }

    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let size = self.types.len() as u32 * 4;
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for number in [24, 0, size, size, self.strings.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.types.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(&self.strings);
        bytes
    }
}

#[derive(Debug, Default, Clone)]
pub struct Vmlinux {
    /// Names, addresses and contents.
    pub sections: Vec<(String, u64, Vec<u8>)>,
    /// Names, addresses and sizes.
    pub symbols: Vec<(String, u64, u64)>,
}

impl Vmlinux {
    /// Writes it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut symbols = vec![0; 24];
        let mut strings = vec![0_u8];
        for (name, address, size) in &self.symbols {
            symbols.extend((strings.len() as u32).to_le_bytes());
            // A global object in some section.
            symbols.extend([0x11, 0, 1, 0]);
            symbols.extend(address.to_le_bytes());
            symbols.extend(size.to_le_bytes());
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        let mut sections = self.sections.clone();
        sections.push((".symtab".to_owned(), 0, symbols));
        sections.push((".strtab".to_owned(), 0, strings));
        let mut names = vec![0_u8];
        let mut file = vec![0; 64];
        let mut headers = vec![0; 64];
        sections.push((".shstrtab".to_owned(), 0, Vec::new()));
        let count = sections.len();
        for (n, (name, address, mut content)) in sections.into_iter().enumerate() {
            let name_at = names.len() as u32;
            names.extend(name.as_bytes());
            names.push(0);
            let kind: u32 = if name == ".symtab" { 2 } else { 1 };
            if n + 1 == count {
                content.clone_from(&names);
            }
            let mut header = name_at.to_le_bytes().to_vec();
            header.extend(kind.to_le_bytes());
            for number in [0, address, file.len() as u64, content.len() as u64] {
                header.extend(number.to_le_bytes());
            }
            // The symbols' strings are in the next section.
            header.extend((n as u32 + 2).to_le_bytes());
            header.resize(64, 0);
            headers.extend(header);
            file.extend(content);
        }
        let table = file.len() as u64;
        file.extend(headers);
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[16..20].copy_from_slice(&[2, 0, 62, 0]);
        file[40..48].copy_from_slice(&table.to_le_bytes());
        file[58..64].copy_from_slice(&[64, 0, count as u8 + 1, 0, count as u8, 0]);
        std::fs::write(path, file)
    }
}
