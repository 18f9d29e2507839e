//! Text that is any bytes. TorchScript's `str` is a stretch of bytes that need not be UTF-8: a slice may hold a part of a
//! character. A [`Value::Str`](super::Value) holds `str` all the same: each byte that is not part of a character stands
//! there as one of the last 128 code points (U+10FF80 to U+10FFFF, which are for private use), and so do the bytes of such
//! code points themselves. The mapping is one to one, and text without stand-ins, nearly all, is what it looks like.
//!
//! Code that counts, cuts, searches or orders text uses its [`bytes`]; code that joins pieces calls [`joined`].

use std::borrow::Cow;

/// Stands for the byte 0; bytes of ASCII have no stand-ins.
const FIRST: u32 = 0x10_ff00;

fn byte_of(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(FIRST)?;
    u8::try_from(byte).ok().filter(|byte| !byte.is_ascii())
}

/// Whether text holds bytes that are not characters.
pub fn has_stand_ins(text: &str) -> bool {
    // All of them begin with the same byte, which few texts have.
    text.as_bytes().contains(&0xf4) && text.chars().any(|c| byte_of(c).is_some())
}

/// The bytes that text means.
pub fn bytes(text: &str) -> Cow<'_, [u8]> {
    if !has_stand_ins(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(out)
}

/// Text that means these bytes.
pub fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let stand_in =
        |byte: &u8| char::from_u32(FIRST + u32::from(*byte)).unwrap_or(char::REPLACEMENT_CHARACTER);
    for chunk in bytes.utf8_chunks() {
        if has_stand_ins(chunk.valid()) {
            for c in chunk.valid().chars() {
                match byte_of(c) {
                    Some(_) => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes().iter().map(stand_in)),
                    None => out.push(c),
                }
            }
        } else {
            out.push_str(chunk.valid());
        }
        out.extend(chunk.invalid().iter().map(stand_in));
    }
    out
}

/// Text made of pieces one after the other, where bytes of several pieces may be one character.
pub fn joined(pieces: String) -> String {
    if has_stand_ins(&pieces) { text(&bytes(&pieces)) } else { pieces }
}

/// What Python says of bytes that are not UTF-8; None where they are.
pub fn decode_error(bytes: &[u8]) -> Option<String> {
    let error = std::str::from_utf8(bytes).err()?;
    let start = error.valid_up_to();
    let (len, reason) = match (error.error_len(), bytes[start]) {
        (None, _) => (bytes.len() - start, "unexpected end of data"),
        (Some(len), 0x80..=0xc1 | 0xf5..) => (len, "invalid start byte"),
        (Some(len), _) => (len, "invalid continuation byte"),
    };
    Some(if len == 1 {
        format!("'utf-8' codec can't decode byte {:#04x} in position {start}: {reason}", bytes[start])
    } else {
        format!("'utf-8' codec can't decode bytes in position {start}-{}: {reason}", start + len - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive() {
        for sample in [
            &b"abc"[..],
            b"\xd0",
            b"\xd0\xbc\xd0",
            b"a\xff\xfeb",
            "\u{10ff80}\u{10ffff}".as_bytes(),
            b"\xed\xa0\x80",
        ] {
            let kept = text(sample);
            assert_eq!(&*bytes(&kept), sample);
            assert_eq!(text(&bytes(&kept)), kept);
        }
    }

    #[test]
    fn parts_of_a_character_join() {
        let (first, second) = (text(b"\xd0"), text(b"\xbc"));
        assert!(has_stand_ins(&first) && !has_stand_ins("м"));
        assert_eq!(joined(first + &second), "м");
    }

    #[test]
    fn errors_are_pythons() {
        let message = |bytes: &[u8]| decode_error(bytes).unwrap_or_default();
        assert_eq!(
            message(b"\xd0"),
            "'utf-8' codec can't decode byte 0xd0 in position 0: unexpected end of data"
        );
        assert_eq!(
            message(b"xyz\xb0"),
            "'utf-8' codec can't decode byte 0xb0 in position 3: invalid start byte"
        );
        assert_eq!(
            message(b"[\xd0]"),
            "'utf-8' codec can't decode byte 0xd0 in position 1: invalid continuation byte"
        );
        assert_eq!(message("м".as_bytes()), "");
    }
}
