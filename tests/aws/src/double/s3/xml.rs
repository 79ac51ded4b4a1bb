//! Just enough XML to answer with.

/// The content type of XML.
pub(super) const CONTENT_TYPE: &str = "application/xml";

/// A document in the making.
#[derive(Debug)]
pub(super) struct Xml(String);

impl Xml {
    /// Begins the document with its outermost element; `attributes` stands after its name.
    pub(super) fn begin(element: &str, attributes: &str) -> Self {
        Self(format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{element}{attributes}>"
        ))
    }

    pub(super) fn open(&mut self, element: &str) {
        self.0.extend(["<", element, ">"]);
    }

    pub(super) fn close(&mut self, element: &str) {
        self.0.extend(["</", element, ">"]);
    }

    /// An element that holds text.
    pub(super) fn text(&mut self, element: &str, text: &str) {
        self.open(element);
        text.chars().for_each(|c| self.push(c));
        self.close(element);
    }

    pub(super) fn end(mut self, element: &str) -> String {
        self.close(element);
        self.0
    }

    fn push(&mut self, c: char) {
        match c {
            '<' => self.0 += "&lt;",
            '>' => self.0 += "&gt;",
            '&' => self.0 += "&amp;",
            '"' => self.0 += "&quot;",
            // XML readers turn a bare carriage return into a line feed.
            '\r' => self.0 += "&#13;",
            c => self.0.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut xml = Xml::begin("A", "");
        xml.text("K", "<b>&\"ü\r");
        let expected =
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<A><K>&lt;b&gt;&amp;&quot;ü&#13;</K></A>";
        assert_eq!(xml.end("A"), expected);
    }
}
